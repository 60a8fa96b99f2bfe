// group_norm, group_norm_bf16: operands x, weight or -1, bias or -1; attributes groups, epsilon, activation, alpha,
// beta. interpolate, interpolate_bf16: attributes bilinear, aligned_corners, scale_height and scale_width (inputs per
// output; absent: from the sizes). All channels-last; rank 3 is height 1.
#include <algorithm>

#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr int64_t kMostChannels = int64_t{1} << 31;
constexpr double kLargestScale = 1 << 20;  // inputs per output
constexpr double kLargestPlace = int64_t{1} << 62;

constexpr ValueRule kGroupNormOperands[] = {
    {"x", {Dtype::f32}, ValueLayout::channels_last},
    {"weight", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kGroupNormBf16Operands[] = {
    {"x", {Dtype::bf16}, ValueLayout::channels_last},
    {"weight", {Dtype::bf16}, ValueLayout::row_major, Presence::optional},
    {"bias", {Dtype::bf16}, ValueLayout::row_major, Presence::optional},
};
constexpr AttributeRule kGroupNormAttributes[] = {
    integer_rule("groups", 1, kMostChannels, true),
    number_rule("epsilon", 0, 1e30),
    text_rule("activation", is_epilogue_activation),
    any_number_rule("alpha"),
    any_number_rule("beta"),
};
constexpr ValueRule kImageF32[] = {{"image", {Dtype::f32}, ValueLayout::channels_last}};
constexpr ValueRule kImageBf16[] = {{"image", {Dtype::bf16}, ValueLayout::channels_last}};
constexpr AttributeRule kInterpolateAttributes[] = {
    flag_rule("bilinear"),
    flag_rule("aligned_corners"),
    number_rule("scale_height", 0, kLargestScale),
    number_rule("scale_width", 0, kLargestScale),
};

constexpr StepSchema kImageSchemas[] = {
    {"group_norm", kGroupNormOperands, kImageF32, kGroupNormAttributes},
    {"group_norm_bf16", kGroupNormBf16Operands, kImageBf16, kGroupNormAttributes},
    {"interpolate", kImageF32, kImageF32, kInterpolateAttributes},
    {"interpolate_bf16", kImageBf16, kImageBf16, kInterpolateAttributes},
};

template <typename Call>
void bind_group_norm_of(StepBinder& binder, std::string_view kernel) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  binder.require(x.sizes.size() >= 2 && x.sizes.size() <= 5, "x has ", x.sizes.size(), " dimensions");
  binder.require_sizes(y, x.sizes);
  Call call;
  call.batch = x.sizes[0], call.channels = x.sizes[1];
  call.positions = 1;
  for (size_t i = 2; i < x.sizes.size(); ++i) call.positions *= x.sizes[i];
  call.groups = binder.attributes().integer("groups");
  binder.require(
      call.channels > 0 && call.channels % call.groups == 0 && call.channels / call.groups <= kMostGroupChannels,
      call.channels, " channels in ", call.groups, " groups");
  if (call.positions == 0) call.batch = 0;
  call.epsilon = static_cast<float>(binder.attributes().number("epsilon", 0));
  call.epilogue = read_epilogue(binder);
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::y, y);
  if (binder.has_operand(1)) {
    binder.require_sizes(binder.operand(1), {call.channels});
    binder.point(&Call::weight, binder.operand(1));
  }
  if (binder.has_operand(2)) {
    binder.require_sizes(binder.operand(2), {call.channels});
    binder.point(&Call::bias, binder.operand(2));
  }
  binder.set_work(0, 16.0 * static_cast<double>(x.elements()));
}

template <typename Call>
void bind_interpolate_of(StepBinder& binder, std::string_view kernel) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  binder.require(x.sizes.size() == 4 && y.sizes.size() == 4, "values must have 4 dimensions");
  Call call;
  call.batch = x.sizes[0], call.channels = x.sizes[1], call.height = x.sizes[2], call.width = x.sizes[3];
  call.out_height = y.sizes[2], call.out_width = y.sizes[3];
  binder.require_sizes(y, {call.batch, call.channels, call.out_height, call.out_width});
  binder.require(y.elements() == 0 || (call.height > 0 && call.width > 0), "x is empty");
  call.bilinear = binder.attributes().integer("bilinear", 0) != 0;
  call.aligned_corners = binder.attributes().integer("aligned_corners", 0) != 0;
  const auto find_scale = [&](const char* name, int64_t inputs, int64_t outputs) {
    if (call.aligned_corners)
      return outputs > 1 ? static_cast<float>(inputs - 1) / static_cast<float>(outputs - 1) : 0.0f;
    const double given = binder.attributes().number(name, 0);
    // Places in x are counted in 64 bits before they are cut to its size.
    binder.require(given * static_cast<double>(outputs) < kLargestPlace, name, " is ", given, " for ", outputs);
    if (given > 0) return static_cast<float>(given);
    return outputs > 0 ? static_cast<float>(inputs) / static_cast<float>(outputs) : 1.0f;
  };
  call.scale_height = find_scale("scale_height", call.height, call.out_height);
  call.scale_width = find_scale("scale_width", call.width, call.out_width);
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::y, y);
  binder.set_work((call.bilinear ? 12.0 : 2.0) * static_cast<double>(y.elements()),
                  static_cast<double>((x.elements() + y.elements()) * item_size(x.dtype)));
}

}  // namespace

std::span<const StepSchema> image_schemas() { return kImageSchemas; }

void bind_group_norm(StepBinder& binder) { bind_group_norm_of<GroupNormCall>(binder, "group_norm"); }
void bind_group_norm_bf16(StepBinder& binder) { bind_group_norm_of<GroupNormBf16Call>(binder, "group_norm_bf16"); }
void bind_interpolate(StepBinder& binder) { bind_interpolate_of<InterpolateCall>(binder, "interpolate"); }
void bind_interpolate_bf16(StepBinder& binder) { bind_interpolate_of<InterpolateBf16Call>(binder, "interpolate_bf16"); }

}  // namespace lissome

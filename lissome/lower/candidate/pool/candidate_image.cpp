// Group norm, instance norm and interpolation on our own kernels, both of channels-last values.
#include "lissome/lower/candidate/interpolate/interpolate_candidates.h"
#include "lissome/lower/candidate/norm/norm_candidates.h"
#include "lissome/lower/candidate/refusals.h"
#include "lissome/runtime/step/interpolate/interpolate_steps.h"
#include "lissome/runtime/step/norm/group_norm_steps.h"

namespace lissome {

namespace {

// Instance norm is group norm with a group for each channel.
std::optional<int64_t> find_groups(const PlanBuilder& builder, const Node& node) {
  if (node.is("aten::instance_norm")) {
    const std::vector<Dimension>& sizes = builder.type(node.argument("input").value()).sizes;
    return sizes.size() < 2 ? std::nullopt : sizes[1].constant();
  }
  const auto* groups = node.argument("num_groups").get<int64_t>();
  return groups ? std::optional(*groups) : std::nullopt;
}

std::string refuse_instance_form(const Node& node) {
  if (!node.is("aten::instance_norm")) return {};
  return node.argument("use_input_stats") == Argument(true) ? "" : "it does not use the statistics of its input";
}

std::string refuse_group_norm_of(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  const Argument& x = node.argument("input");
  const std::string refusal = first_refusal(
      {refuse_instance_form(node), refuse_tensor(builder, x, dtype),
       refuse_optional(builder, node.argument("weight"), dtype), refuse_optional(builder, node.argument("bias"), dtype),
       refuse_number(node.argument("eps"), "eps"), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  const std::vector<Dimension>& sizes = builder.type(x.value()).sizes;
  const std::optional<int64_t> groups = find_groups(builder, node);
  if (!groups || sizes.size() < 2 || sizes.size() > 5) return "its groups are computed, or it has an odd rank";
  const auto channels = sizes[1].constant();
  if (!channels || *groups <= 0 || *channels % *groups != 0) return "channels do not divide into groups";
  return *channels / *groups <= kMostGroupChannels ? "" : "a group has too many channels";
}

}  // namespace

std::string refuse_group_norm(const PlanBuilder& builder, const Node& node) {
  return refuse_group_norm_of(builder, node, Dtype::f32);
}
std::string refuse_group_norm_bf16(const PlanBuilder& builder, const Node& node) {
  return refuse_group_norm_of(builder, node, Dtype::bf16);
}

namespace {

template <typename Step>
void emit_group_norm_of(PlanBuilder& builder, const Node& node) {
  Step step;
  step.groups = *find_groups(builder, node);
  step.epsilon = read_number(node.argument("eps"));
  step.x = {builder.use_dense(node.argument("input"), node, Format::channels_last)};
  step.weight = {builder.use_dense(node.argument("weight"), node)};
  step.bias = {builder.use_dense(node.argument("bias"), node)};
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

}  // namespace

void emit_group_norm(PlanBuilder& builder, const Node& node) {
  if (builder.type(node.result()).dtype == Dtype::bf16) return emit_group_norm_of<GroupNormBf16Step>(builder, node);
  emit_group_norm_of<GroupNormStep>(builder, node);
}

namespace {

const Argument& image_of(const Node& node) {
  return node.argument(node.op.name().ends_with(".vec") ? "input" : "self");
}

// Outputs per input, height then width, where the node states them: the sizes alone would round them.
std::optional<std::vector<double>> read_scales(const Node& node) {
  std::vector<double> scales;
  if (!node.op.name().ends_with(".vec")) {
    for (const char* name : {"scales_h", "scales_w"}) {
      const Argument& scale = node.argument(name);
      if (!scale.is_none() && !refuse_number(scale, name).empty()) return std::nullopt;
      scales.push_back(scale.is_none() ? 0 : read_number(scale));
    }
    return scales;
  }
  const Argument& list = node.argument("scale_factors");
  if (list.is_none()) return std::vector<double>{0, 0};
  if (!list.is_list() || list.list().size() != 2) return std::nullopt;
  for (const Argument& scale : list.list()) {
    if (!refuse_number(scale, "a scale").empty()) return std::nullopt;
    scales.push_back(read_number(scale));
  }
  return scales;
}

bool is_bilinear(const Node& node) { return node.op.name().starts_with("aten::upsample_bilinear2d"); }

std::string refuse_interpolate_of(const PlanBuilder& builder, const Node& node, Dtype dtype) {
  const std::string refusal = first_refusal(
      {refuse_tensor(builder, image_of(node), dtype), refuse_tensor(builder, Argument(node.result()), dtype)});
  if (!refusal.empty()) return refusal;
  if (builder.is_held(image_of(node).value())) return "the reference library holds the operand";
  if (is_bilinear(node) && !node.argument("align_corners").get<bool>()) return "align_corners is computed";
  const auto scales = read_scales(node);
  if (!scales) return "the scales are computed";
  return (*scales)[0] >= 0 && (*scales)[1] >= 0 ? "" : "a scale is negative";
}

}  // namespace

std::string refuse_interpolate(const PlanBuilder& builder, const Node& node) {
  return refuse_interpolate_of(builder, node, Dtype::f32);
}
std::string refuse_interpolate_bf16(const PlanBuilder& builder, const Node& node) {
  return refuse_interpolate_of(builder, node, Dtype::bf16);
}

namespace {

template <typename Step>
void emit_interpolate_of(PlanBuilder& builder, const Node& node) {
  const std::vector<double> scales = *read_scales(node);
  Step step;
  step.bilinear = is_bilinear(node);
  step.aligned_corners = step.bilinear && *node.argument("align_corners").get<bool>();
  if (scales[0] > 0) step.scale_height = 1 / scales[0];
  if (scales[1] > 0) step.scale_width = 1 / scales[1];
  step.x = {builder.use_dense(image_of(node), node, Format::channels_last)};
  step.y = {builder.make(node.result(), Storage::arena, Format::channels_last)};
  builder.add_step(step, node);
}

}  // namespace

void emit_interpolate(PlanBuilder& builder, const Node& node) {
  if (builder.type(node.result()).dtype == Dtype::bf16) return emit_interpolate_of<InterpolateBf16Step>(builder, node);
  emit_interpolate_of<InterpolateStep>(builder, node);
}

}  // namespace lissome

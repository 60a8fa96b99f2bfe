// The steps that compute in bf16. conv_bf16: operands x, packed weight, bias (f32) or -1, residual or -1; attributes as
// those of conv_f32, and "transposed", "planes" (x is in row order, bf16 or f32). linear_bf16: operands x, packed
// weight, bias (f32) or -1, residual or -1; leading dimensions of x are rows. layer_norm_bf16: x, weight or -1, bias or
// -1. softmax_bf16: over the last dimension.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_rules.h"

namespace lissome {
namespace {

constexpr ValueRule kWeight = {"weight", {Dtype::bf16}};
constexpr ValueRule kBias = {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional};

constexpr ValueRule kLinearOperands[] = {
    {"x", {Dtype::bf16}},
    kWeight,
    kBias,
    {"residual", {Dtype::bf16}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kConvOperands[] = {
    {"x", {Dtype::bf16, Dtype::f32}, ValueLayout::dense},
    kWeight,
    kBias,
    {"residual", {Dtype::bf16}, ValueLayout::channels_last, Presence::optional},
};
constexpr ValueRule kNormOperands[] = {
    {"x", {Dtype::bf16}},
    {"weight", {Dtype::bf16}, ValueLayout::row_major, Presence::optional},
    {"bias", {Dtype::bf16}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kSoftmaxOperands[] = {{"x", {Dtype::bf16}}};
constexpr ValueRule kRowResults[] = {{"y", {Dtype::bf16}}};
constexpr ValueRule kConvResults[] = {{"y", {Dtype::bf16}, ValueLayout::channels_last}};

constexpr AttributeRule kConvOwn[] = {flag_rule("transposed"), flag_rule("planes")};
constexpr AttributeRule kNormAttributes[] = {
    integer_rule("width", 1, kLargestBytes, true),
    number_rule("epsilon", 0, 1e30),
    flag_rule("root_mean_square"),
};
constexpr auto kLinearAttributes = join_rules(kOutputsRules, kEpilogueRules, kResidualRules);
constexpr auto kConvAttributes =
    join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kEpilogueRules, kResidualRules, kConvOwn);

constexpr StepSchema kBf16Schemas[] = {
    {"linear_bf16", kLinearOperands, kRowResults, kLinearAttributes},
    {"conv_bf16", kConvOperands, kConvResults, kConvAttributes},
    {"layer_norm_bf16", kNormOperands, kRowResults, kNormAttributes},
    {"softmax_bf16", kSoftmaxOperands, kRowResults, {}},
};

constexpr double kTileSpeed = 8;  // of products on tile registers, roughly, against those of f32

void require_elements(const StepBinder& binder, const PlacedValue& value, int64_t elements) {
  binder.require(value.elements() == elements, "an operand or result has ", value.elements(), " elements, must have ",
                 elements);
}

}  // namespace

std::span<const StepSchema> bf16_schemas() { return kBf16Schemas; }

void bind_linear_bf16(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &weight = binder.operand(1), &y = binder.result();
  LinearBf16Call call;
  read_linear(binder, call);
  binder.require_product({call.outputs + kBf16Panel, call.inputs + kBf16Step, 2});
  binder.require_sizes(weight, {packed_linear_bf16_size(call.outputs, call.inputs)});
  const double speed = can_run(Isa::amx) ? kTileSpeed : 1;
  binder.set_call("linear_bf16", call);
  binder.point(&LinearBf16Call::x, x);
  binder.point(&LinearBf16Call::weight, weight);
  binder.point(&LinearBf16Call::y, y);
  if (binder.has_operand(2)) {
    binder.require_sizes(binder.operand(2), {call.outputs});
    binder.point(&LinearBf16Call::bias, binder.operand(2));
  }
  if (binder.has_operand(3)) {
    binder.require_sizes(binder.operand(3), y.sizes);
    binder.point(&LinearBf16Call::residual, binder.operand(3));
  }
  const double rows = static_cast<double>(call.rows), inputs = static_cast<double>(call.inputs),
               outputs = static_cast<double>(call.outputs);
  binder.set_products(rows * inputs * outputs, Dtype::bf16);
  binder.set_work(rows * inputs * outputs / speed, 2 * (rows * (inputs + outputs) + inputs * outputs));
  binder.point_scratch(&LinearBf16Call::scratch, {binder.parts(), linear_bf16_scratch(call.rows, call.inputs)});
}

void bind_conv_bf16(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  ConvBf16Call call;
  call.planes = binder.attributes().integer("planes", 0) != 0;
  const bool wide = call.planes && x.dtype == Dtype::f32;
  if (!wide) binder.require_dtype(x, Dtype::bf16);
  call.transposed = binder.attributes().integer("transposed", 0) != 0;
  const WindowSizes sizes =
      read_window(binder, x, y, call.window, call.planes ? Format::row_major : Format::channels_last, call.transposed);
  const Window& w = call.window;
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  if (call.transposed) require_few_phases(binder, w);
  binder.require(!call.planes || (call.groups == 1 && !call.transposed && call.in_channels < kBf16Step),
                 "planes are those of one group of less than ", kBf16Step, " channels");
  const int64_t taps = w.kernel_height * w.kernel_width;
  binder.require_product({call.out_channels + call.groups * kBf16Panel,
                          (call.in_channels / call.groups + kBf16Step) * (taps + kMostPhases * kMostPhases), 32});
  binder.require_sizes(binder.operand(1), {packed_conv_bf16_size(call)});
  call.y_stride = call.residual_stride = call.out_channels;
  call.epilogue = read_epilogue(binder);
  call.residual_place = read_residual_place(binder, 3);
  call.scratch_part = conv_bf16_scratch(call);
  binder.set_call("conv_bf16", call);
  if (wide) {
    binder.point(&ConvBf16Call::wide_planes, x);
  } else {
    binder.point(&ConvBf16Call::x, x);
  }
  binder.point(&ConvBf16Call::weight, binder.operand(1));
  binder.point(&ConvBf16Call::y, y);
  if (binder.has_operand(2)) {
    binder.require_sizes(binder.operand(2), {call.out_channels});
    binder.point(&ConvBf16Call::bias, binder.operand(2));
  }
  if (binder.has_operand(3)) {
    binder.require_sizes(binder.operand(3), y.sizes);
    binder.point(&ConvBf16Call::residual, binder.operand(3));
  }
  const int64_t pixels = call.transposed ? w.batch * w.height * w.width : w.batch * w.out_height * w.out_width;
  const double products = static_cast<double>(pixels) * static_cast<double>(call.out_channels) *
                          static_cast<double>(call.in_channels / call.groups * taps);
  binder.set_products(products, Dtype::bf16);
  binder.set_work(products / (can_run(Isa::amx) ? kTileSpeed : 1),
                  2.0 * static_cast<double>(x.elements() + y.elements() + packed_conv_bf16_size(call)));
  binder.point_scratch(&ConvBf16Call::scratch, {binder.parts(), call.scratch_part});
}

void bind_layer_norm_bf16(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  LayerNormBf16Call call;
  call.width = binder.attributes().integer("width");
  binder.require(x.elements() % call.width == 0, quote("width"), " is ", call.width);
  call.rows = x.elements() / call.width;
  call.epsilon = static_cast<float>(binder.attributes().number("epsilon", 0));
  call.root_mean_square = binder.attributes().integer("root_mean_square", 0) != 0;
  require_elements(binder, y, x.elements());
  binder.set_call("layer_norm_bf16", call);
  binder.point(&LayerNormBf16Call::x, x);
  binder.point(&LayerNormBf16Call::y, y);
  if (binder.has_operand(1)) {
    require_elements(binder, binder.operand(1), call.width);
    binder.point(&LayerNormBf16Call::weight, binder.operand(1));
  }
  if (binder.has_operand(2)) {
    require_elements(binder, binder.operand(2), call.width);
    binder.point(&LayerNormBf16Call::bias, binder.operand(2));
  }
  binder.set_work(0, 12.0 * static_cast<double>(x.elements()));
}

void bind_softmax_bf16(StepBinder& binder) {
  const PlacedValue &x = binder.operand(0), &y = binder.result();
  require_elements(binder, y, x.elements());
  SoftmaxBf16Call call;
  call.width = x.sizes.empty() ? 1 : x.sizes.back();
  call.rows = call.width > 0 ? x.elements() / call.width : 0;
  binder.set_call("softmax_bf16", call);
  binder.point(&SoftmaxBf16Call::x, x);
  binder.point(&SoftmaxBf16Call::y, y);
  binder.set_work(0, 24.0 * static_cast<double>(x.elements()));
}

}  // namespace lissome

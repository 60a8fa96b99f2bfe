// quantize_rows: x f32 or bf16, factors alike or none -> u8, scales f32, zeros i32. quantize_image: x f32 [batch,
// channels, ...] -> u8 channels-last, with attributes inverse (1 / scale) and zero. linear_u8s8, conv_u8s8 and so on:
// operands x, packed weight, multiplier, weight sums, bias, residual, and for a linear over quantized rows their scales
// and zeros; -1 where absent. Attributes: outputs, x_zero, activation, for u8 results out_inverse and out_zero, for a
// u8 residual residual_scale and residual_zero.
#include "lissome/runtime/step_rows.h"
#include "lissome/runtime/step_rules.h"

#include <cfloat>

namespace lissome {
namespace {

constexpr DtypeSet kResultDtypes = {Dtype::f32, Dtype::bf16, Dtype::u8};

// Those of products of rows, and of pixels.
constexpr ValueRule kRows = {"x", {Dtype::u8}};
constexpr ValueRule kPixels = {"x", {Dtype::u8}, Layout::channels_last};
constexpr ValueRule kWeight = {"weight", {Dtype::i8}};
constexpr ValueRule kMultiplier = {"multiplier", {Dtype::f32}};
constexpr ValueRule kSums = {"weight_sums", {Dtype::i32}};
constexpr ValueRule kBias = {"bias", {Dtype::f32}, Layout::row_major, Presence::optional};
constexpr ValueRule kResidual = {"residual", kResultDtypes, Layout::channels_last, Presence::optional};
constexpr ValueRule kNoScales = {"row_scales", {}, Layout::row_major, Presence::absent};
constexpr ValueRule kNoZeros = {"row_zeros", {}, Layout::row_major, Presence::absent};
constexpr ValueRule kBorder = {"border", {Dtype::u8}};

constexpr ValueRule kLinearOperands[] = {
    kRows,
    kWeight,
    kMultiplier,
    kSums,
    kBias,
    {"residual", kResultDtypes, Layout::row_major, Presence::optional},
    {"row_scales", {Dtype::f32}, Layout::row_major, Presence::optional},
    {"row_zeros", {Dtype::i32}, Layout::row_major, Presence::optional},
};
constexpr ValueRule kConvOperands[] = {
    kPixels, kWeight, kMultiplier, kSums, kBias, kResidual, kNoScales, kNoZeros, kBorder,
};
constexpr ValueRule kWinogradOperands[] = {
    kPixels, {"weight", {Dtype::i16}}, kMultiplier, kSums, kBias, kResidual, kNoScales, kNoZeros, kBorder,
};
constexpr ValueRule kDepthwiseOperands[] = {kPixels, kWeight, kMultiplier, kSums, kBias, kResidual};
constexpr ValueRule kTransposedOperands[] = {kPixels, kWeight, kMultiplier, kSums, kBias};
constexpr ValueRule kRowResults[] = {{"y", kResultDtypes}};
constexpr ValueRule kPixelResults[] = {{"y", kResultDtypes, Layout::channels_last}};

constexpr ValueRule kQuantizeOperands[] = {
    {"x", {Dtype::f32, Dtype::bf16}},
    {"factors", {Dtype::f32, Dtype::bf16}, Layout::row_major, Presence::optional},
};
constexpr ValueRule kQuantizeResults[] = {{"y", {Dtype::u8}}, {"scales", {Dtype::f32}}, {"zeros", {Dtype::i32}}};
constexpr ValueRule kQuantizeImageOperands[] = {{"x", {Dtype::f32}}};
constexpr ValueRule kQuantizeImageResults[] = {{"y", {Dtype::u8}, Layout::channels_last}};

constexpr AttributeRule kQuantizeImageAttributes[] = {
    number_rule("inverse", -kAnyNumber, kAnyNumber),
    zero_point_rule("zero", true),
};
constexpr AttributeRule kOutputRules[] = {
    zero_point_rule("x_zero"),
    number_rule("out_inverse", 0, kAnyNumber),
    zero_point_rule("out_zero"),
};
constexpr AttributeRule kResidualNumbers[] = {
    number_rule("residual_scale", -kAnyNumber, kAnyNumber),
    zero_point_rule("residual_zero"),
};
constexpr AttributeRule kKernelRules[] = {integers_rule("kernel", 1, kMostWindow, true)};

constexpr auto kLinearAttributes = join_rules(kOutputsRules, kOutputRules, kResidualNumbers, kEpilogueRules);
constexpr auto kConvAttributes =
    join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kOutputRules, kResidualNumbers, kEpilogueRules);
constexpr auto kTransposedAttributes = join_rules(kKernelRules, kOutputRules, kEpilogueRules);

constexpr StepSchema kInt8Schemas[] = {
    {"quantize_rows", kQuantizeOperands, kQuantizeResults, {}},
    {"quantize_image", kQuantizeImageOperands, kQuantizeImageResults, kQuantizeImageAttributes},
    {"linear_u8s8", kLinearOperands, kRowResults, kLinearAttributes},
    {"conv_u8s8", kConvOperands, kPixelResults, kConvAttributes},
    {"winograd_u8s8", kWinogradOperands, kPixelResults, kConvAttributes},
    {"depthwise_u8s8", kDepthwiseOperands, kPixelResults, kConvAttributes},
    {"conv_transposed_u8s8", kTransposedOperands, kPixelResults, kTransposedAttributes},
};

// Of products of bytes, roughly, against those of f32.
double product_speed(int64_t rows) { return can_run(Isa::amx) && rows > 4 ? 24 : 4; }

// How a call of one row count and output count is surrounded; the same for linear and convolution.
template <typename Call>
void read_output(const StepBinder& binder, Call& call, const PlacedValue& y, int64_t outputs) {
  call.x_zero = static_cast<int32_t>(binder.attributes().integer("x_zero", 0));
  call.out_inverse = static_cast<float>(binder.attributes().number("out_inverse", 0));
  call.out_zero = static_cast<int32_t>(binder.attributes().integer("out_zero", 0));
  call.residual_scale = static_cast<float>(binder.attributes().number("residual_scale", 0));
  call.residual_zero = static_cast<int32_t>(binder.attributes().integer("residual_zero", 0));
  call.epilogue = read_epilogue(binder);
  // Kernels run with denormals taken for zero: one here would make y u8 for the binder and f32 for the kernel.
  const bool quantized = call.out_inverse != 0;
  binder.require(!quantized || call.out_inverse >= FLT_MIN, quote("out_inverse"), " is the denormal ",
                 call.out_inverse);
  binder.require((y.dtype == Dtype::u8) == quantized, "y is ", dtype_name(y.dtype), ", ", quote("out_inverse"), " ",
                 call.out_inverse);
  call.narrows = y.dtype == Dtype::bf16;
  for (const size_t position : {size_t{2}, size_t{3}, size_t{4}}) {
    if (binder.has_operand(position)) binder.require_sizes(binder.operand(position), {outputs});
  }
  if (binder.has_operand(5)) binder.require_sizes(binder.operand(5), y.sizes);
}

template <typename Call>
void point_output(StepBinder& binder, const PlacedValue& y) {
  binder.point(static_cast<const float * Call::*>(&Call::multiplier), binder.operand(2));
  binder.point(static_cast<const int32_t * Call::*>(&Call::weight_sums), binder.operand(3));
  if (binder.has_operand(4)) binder.point(static_cast<const float * Call::*>(&Call::bias), binder.operand(4));
  if (binder.has_operand(5) && binder.operand(5).dtype == Dtype::bf16) {
    binder.point(static_cast<const uint16_t * Call::*>(&Call::residual_bf16), binder.operand(5));
  } else if (binder.has_operand(5) && binder.operand(5).dtype == Dtype::u8) {
    binder.point(static_cast<const uint8_t * Call::*>(&Call::residual_u8), binder.operand(5));
  } else if (binder.has_operand(5)) {
    binder.point(static_cast<const float * Call::*>(&Call::residual), binder.operand(5));
  }
  if (binder.has_operand(6)) {
    binder.point(static_cast<const float * Call::*>(&Call::row_scales), binder.operand(6));
    binder.point(static_cast<const int32_t * Call::*>(&Call::row_zeros), binder.operand(7));
  }
  binder.point(static_cast<void * Call::*>(&Call::y), y);
}

// What is read outside of x.
void require_border(const StepBinder& binder, int64_t channels) { binder.require_sizes(binder.operand(8), {channels}); }

}  // namespace

std::span<const StepSchema> int8_schemas() { return kInt8Schemas; }

void bind_quantize_rows(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result(0);
  binder.require(!x.sizes.empty() && x.sizes.back() > 0, "x has no rows");
  binder.require_sizes(y, x.sizes);
  QuantizeRowsCall call;
  call.inputs = call.x_stride = call.y_stride = x.sizes.back();
  call.rows = x.elements() / call.inputs;
  binder.require(binder.result(1).elements() == call.rows && binder.result(2).elements() == call.rows,
                 "there must be one scale and zero point a row");
  if (binder.has_operand(1)) {
    binder.require_dtype(binder.operand(1), x.dtype);
    binder.require_sizes(binder.operand(1), {call.inputs});
  }
  binder.set_call("quantize_rows", call);
  if (x.dtype == Dtype::bf16) {
    binder.point(&QuantizeRowsCall::x_bf16, x);
    if (binder.has_operand(1)) binder.point(&QuantizeRowsCall::factors_bf16, binder.operand(1));
  } else {
    binder.point(&QuantizeRowsCall::x, x);
    if (binder.has_operand(1)) binder.point(&QuantizeRowsCall::factors, binder.operand(1));
  }
  binder.point(&QuantizeRowsCall::y, y);
  binder.point(&QuantizeRowsCall::scales, binder.result(1));
  binder.point(&QuantizeRowsCall::zeros, binder.result(2));
  binder.set_work(0, 9.0 * static_cast<double>(x.elements()));
}

void bind_quantize_image(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  // Those of rank 6 and more have no order with channels last.
  binder.require(x.sizes.size() > 2 && x.sizes.size() < 6 && x.sizes[1] > 0, "x is no image");
  binder.require_sizes(y, x.sizes);
  QuantizeImageCall call;
  call.batch = x.sizes[0], call.channels = x.sizes[1];
  call.pixels = call.batch == 0 ? 0 : x.elements() / (call.batch * call.channels);
  call.inverse = static_cast<float>(binder.attributes().number("inverse", 0));
  call.zero = static_cast<int32_t>(binder.attributes().integer("zero"));
  binder.set_call("quantize_image", call);
  binder.point(&QuantizeImageCall::x, x);
  binder.point(&QuantizeImageCall::y, y);
  binder.set_work(0, 5.0 * static_cast<double>(x.elements()));
}

void bind_linear_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require(!x.sizes.empty() && x.sizes.back() > 0, "x has no inputs");
  LinearU8S8Call call;
  call.inputs = call.x_stride = x.sizes.back();
  call.outputs = call.y_stride = call.residual_stride = binder.attributes().integer("outputs");
  binder.require_product({call.outputs + kLinearPanel, call.inputs + kLinearPanel});
  call.rows = x.elements() / call.inputs;
  binder.require_sizes(binder.operand(1), {packed_u8s8_size(call.outputs, call.inputs, {})});
  Sizes sizes = x.sizes;
  sizes.back() = call.outputs;
  binder.require_sizes(y, sizes);
  read_output(binder, call, y, call.outputs);
  binder.require(binder.has_operand(6) == binder.has_operand(7), "scales and zero points of rows come together");
  for (const size_t position : {size_t{6}, size_t{7}}) {
    binder.require(!binder.has_operand(position) || binder.operand(position).elements() == call.rows,
                   "there must be one scale and zero point a row");
  }
  binder.set_call("linear_u8s8", call);
  binder.point(&LinearU8S8Call::x, x);
  binder.point(&LinearU8S8Call::weight, binder.operand(1));
  point_output<LinearU8S8Call>(binder, y);
  const auto rows = static_cast<double>(call.rows), inputs = static_cast<double>(call.inputs),
             outputs = static_cast<double>(call.outputs);
  binder.set_products(rows * inputs * outputs, Dtype::u8);
  binder.set_work(rows * inputs * outputs / product_speed(call.rows), rows * (inputs + 4 * outputs) + inputs * outputs);
}

void bind_conv_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  ConvU8S8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  call.in_channels = sizes.in_channels;
  call.out_channels = call.y_stride = call.residual_stride = sizes.out_channels;
  call.groups = sizes.groups;
  const int64_t rows = call.window.batch * call.window.out_height * call.window.out_width;
  const int64_t block = packed_u8s8_size(call.out_channels / call.groups, call.in_channels / call.groups,
                                         choose_runs(call.window, call.groups));
  binder.require_sizes(binder.operand(1), {call.groups * block});
  read_output(binder, call, y, call.out_channels);
  require_border(binder, call.in_channels);
  binder.set_call("conv_u8s8", call);
  binder.point(&ConvU8S8Call::x, x);
  binder.point(&ConvU8S8Call::weight, binder.operand(1));
  binder.point(&ConvU8S8Call::border, binder.operand(8));
  point_output<ConvU8S8Call>(binder, y);
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.set_products(static_cast<double>(y.elements()) * static_cast<double>(call.in_channels / call.groups * taps),
                      Dtype::u8);
  binder.set_work(static_cast<double>(rows) * static_cast<double>(block) / product_speed(rows),
                  static_cast<double>(x.elements() + 4 * y.elements()));
  const int64_t scratch = conv_u8s8_scratch(call.window, call.in_channels);
  if (can_run(Isa::avx2)) binder.point_scratch(&ConvU8S8Call::scratch, {binder.parts(), scratch});
}

void bind_winograd_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  WinogradU8S8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  require_winograd_window(binder, call.window, sizes.groups);
  binder.require(sizes.in_channels % kWinogradBytes == 0 && sizes.out_channels % kWinogradBytes == 0,
                 "it takes multiples of ", kWinogradBytes, " channels");
  call.tile = kWinogradByteTile, call.in_channels = sizes.in_channels;
  call.out_channels = call.y_stride = call.residual_stride = sizes.out_channels;
  const int64_t packed = packed_winograd_u8s8_size(call.out_channels, call.in_channels);
  binder.require_sizes(binder.operand(1), {packed});
  read_output(binder, call, y, call.out_channels);
  require_border(binder, call.in_channels);
  const auto products = static_cast<double>(y.elements()) * static_cast<double>(call.in_channels * 9);
  binder.set_products(products, Dtype::u8);
  binder.set_work(products / 4, static_cast<double>(x.elements() + 4 * y.elements() + 2 * packed));
  choose_winograd_u8s8_blocks(call, binder.parts());
  binder.set_call("winograd_u8s8", call);
  binder.point(&WinogradU8S8Call::x, x);
  binder.point(&WinogradU8S8Call::weight, binder.operand(1));
  binder.point(&WinogradU8S8Call::zeros, binder.operand(8));
  binder.point_scratch(&WinogradU8S8Call::scratch, {binder.parts(), winograd_u8s8_scratch(call)});
  point_output<WinogradU8S8Call>(binder, y);
}

void bind_depthwise_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  DepthwiseU8S8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  const Window& w = call.window;
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  binder.require(takes_depthwise_u8s8(w), "the window is ", w.kernel_height, "x", w.kernel_width, ", dilated by ",
                 w.dilation_width, ": too large");
  call.channels = call.y_stride = call.residual_stride = sizes.in_channels;
  binder.require_sizes(binder.operand(1), {packed_depthwise_u8s8_size(call.channels, w)});
  read_output(binder, call, y, call.channels);
  binder.set_call("depthwise_u8s8", call);
  binder.point(&DepthwiseU8S8Call::x, x);
  binder.point(&DepthwiseU8S8Call::weight, binder.operand(1));
  point_output<DepthwiseU8S8Call>(binder, y);
  const auto products = static_cast<double>(y.elements()) * static_cast<double>(w.kernel_height * w.kernel_width);
  binder.set_products(products, Dtype::u8);
  binder.set_work(4 * products, static_cast<double>(x.elements() + 4 * y.elements()));
}

// A product of pixels, whose results are spread over an image that is `kernel` times as large.
void bind_conv_transposed_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require(x.sizes.size() == 4 && y.sizes.size() == 4, "values must have 4 dimensions");
  binder.require(x.sizes[1] > 0, "there are no channels");
  const std::vector<int64_t> kernel = binder.attributes().integers("kernel");
  binder.require(kernel.size() == 2, quote("kernel"), " has ", kernel.size(), " numbers, must have 2");
  binder.require_product({x.sizes[2], kernel[0]});
  // The places of a block of rows are counted in 32 bits.
  constexpr int64_t kBlockRows = 32;
  binder.require_product({x.sizes[3] + kBlockRows, kernel[0], kernel[1]});
  binder.require((x.sizes[3] + kBlockRows) * kernel[0] < INT32_MAX, "lines of ", x.sizes[3], " pixels are spread over ",
                 kernel[0], " lines");
  LinearU8S8Call call;
  call.rows = x.sizes[0] * x.sizes[2] * x.sizes[3];
  call.inputs = call.x_stride = x.sizes[1];
  call.spread = {x.sizes[3], kernel[0], kernel[1], y.sizes[1]};
  binder.require(y.sizes[1] > 0 && y.sizes[1] % kU8S8Panel == 0, "outputs do not fill panels");
  binder.require_product({y.sizes[1], kernel[0], kernel[1], call.inputs + kLinearPanel, 4});
  call.outputs = y.sizes[1] * kernel[0] * kernel[1];
  call.y_stride = y.sizes[1] * kernel[1];
  binder.require_sizes(binder.operand(1), {packed_u8s8_size(call.outputs, call.inputs, {})});
  binder.require_sizes(y, {x.sizes[0], y.sizes[1], x.sizes[2] * kernel[0], x.sizes[3] * kernel[1]});
  read_output(binder, call, y, call.outputs);
  binder.set_call("linear_u8s8", call);
  binder.point(&LinearU8S8Call::x, x);
  binder.point(&LinearU8S8Call::weight, binder.operand(1));
  point_output<LinearU8S8Call>(binder, y);
  const auto products =
      static_cast<double>(call.rows) * static_cast<double>(call.inputs) * static_cast<double>(call.outputs);
  binder.set_products(products, Dtype::u8);
  binder.set_work(products / product_speed(call.rows), static_cast<double>(x.elements() + 4 * y.elements()));
}

}  // namespace lissome

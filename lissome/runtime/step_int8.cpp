// quantize_rows: x f32 or bf16, factors alike or none -> u8, scales f32, zeros i32. quantize_image: x f32 [batch,
// channels, ...] -> u8 channels-last, with attributes inverse (1 / scale) and zero. linear_u8s8, conv_u8s8 and so on:
// operands x, packed weight, multiplier, weight sums, bias, residual, and for a linear over quantized rows their scales
// and zeros; -1 where absent. Attributes: outputs, x_zero, activation, for u8 results out_inverse and out_zero, for a
// u8 residual residual_scale and residual_zero.
#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

// Of products of bytes, roughly, against those of f32.
double product_speed(int64_t rows) { return can_run(Isa::amx) && rows > 4 ? 24 : 4; }

// How a call of one row count and output count is surrounded; the same for linear and convolution.
template <typename Call>
void read_output(const StepBinder& binder, Call& call, int64_t rows, int64_t outputs) {
  call.x_zero = static_cast<int32_t>(binder.attributes().integer("x_zero", 0));
  call.out_inverse = static_cast<float>(binder.attributes().number("out_inverse", 0));
  call.out_zero = static_cast<int32_t>(binder.attributes().integer("out_zero", 0));
  call.residual_scale = static_cast<float>(binder.attributes().number("residual_scale", 0));
  call.residual_zero = static_cast<int32_t>(binder.attributes().integer("residual_zero", 0));
  call.epilogue = read_epilogue(binder);
  for (const int32_t zero : {call.out_zero, call.x_zero, call.residual_zero}) {
    binder.require(zero >= 0 && zero <= 255, "a zero point lies outside of 0..255");
  }
  const auto check = [&](size_t position, Dtype dtype, int64_t count) {
    const PlacedValue& value = binder.operand(position);
    binder.require_dtype(value, dtype);
    binder.require_sizes(value, {count});
    binder.require_row_major(value);
  };
  check(2, Dtype::f32, outputs);
  check(3, Dtype::i32, outputs);
  if (binder.has_operand(4)) check(4, Dtype::f32, outputs);
  if (binder.has_operand(6)) {
    binder.require(binder.operand(6).elements() == rows && binder.operand(7).elements() == rows,
                   "there must be one scale and zero point a row");
    binder.require_dtype(binder.operand(6), Dtype::f32);
    binder.require_dtype(binder.operand(7), Dtype::i32);
  }
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

void check_result(const StepBinder& binder, const PlacedValue& y, const Sizes& sizes, bool quantized, Format format) {
  if (quantized || y.dtype != Dtype::bf16) binder.require_dtype(y, quantized ? Dtype::u8 : Dtype::f32);
  binder.require_sizes(y, sizes);
  binder.require(y.is_dense(format), "the result is not dense");
  if (!binder.has_operand(5)) return;
  const Dtype residual = binder.operand(5).dtype;
  if (residual != Dtype::u8 && residual != Dtype::bf16) binder.require_dtype(binder.operand(5), Dtype::f32);
  binder.require_sizes(binder.operand(5), sizes);
  binder.require(binder.operand(5).is_dense(format), "the residual is not dense");
}

// The same for a convolution, whose rows are the pixels of y.
template <typename Call>
void read_conv_output(const StepBinder& binder, Call& call, const PlacedValue& y, int64_t channels) {
  read_output(binder, call, y.elements() / channels, channels);
  call.narrows = y.dtype == Dtype::bf16;
  binder.require(!binder.has_operand(6), "a convolution takes no scales of rows");
  check_result(binder, y, y.sizes, call.out_inverse != 0, Format::channels_last);
}

// What is read outside of x.
void require_border(const StepBinder& binder, int64_t channels) {
  binder.require(binder.has_operand(8), "the border is missing");
  binder.require_dense(binder.operand(8), Dtype::u8, {channels});
}

}  // namespace

void bind_quantize_rows(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result(0);
  if (x.dtype != Dtype::bf16) binder.require_dtype(x, Dtype::f32);
  binder.require_row_major(x);
  binder.require(!x.sizes.empty() && x.sizes.back() > 0, "x has no rows");
  binder.require_dtype(y, Dtype::u8);
  binder.require_sizes(y, x.sizes);
  QuantizeRowsCall call;
  call.inputs = call.x_stride = call.y_stride = x.sizes.back();
  call.rows = x.elements() / call.inputs;
  binder.require(binder.result(1).elements() == call.rows && binder.result(2).elements() == call.rows,
                 "there must be one scale and zero point a row");
  binder.require_dtype(binder.result(1), Dtype::f32);
  binder.require_dtype(binder.result(2), Dtype::i32);
  if (binder.has_operand(1)) binder.require_dense(binder.operand(1), x.dtype, {call.inputs});
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
  binder.require_dtype(x, Dtype::f32);
  binder.require_row_major(x);
  binder.require(x.sizes.size() > 2 && x.sizes[1] > 0, "x is no image");
  binder.require_dtype(y, Dtype::u8);
  binder.require_sizes(y, x.sizes);
  binder.require(y.is_dense(Format::channels_last), "the result is not channels-last");
  QuantizeImageCall call;
  call.batch = x.sizes[0], call.channels = x.sizes[1];
  call.pixels = call.batch == 0 ? 0 : x.elements() / (call.batch * call.channels);
  call.inverse = static_cast<float>(binder.attributes().number("inverse", 0));
  call.zero = static_cast<int32_t>(binder.attributes().integer("zero"));
  binder.require(call.zero >= 0 && call.zero <= 255, "a zero point lies outside of 0..255");
  binder.set_call("quantize_image", call);
  binder.point(&QuantizeImageCall::x, x);
  binder.point(&QuantizeImageCall::y, y);
  binder.set_work(0, 5.0 * static_cast<double>(x.elements()));
}

void bind_linear_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, Dtype::u8);
  binder.require_row_major(x);
  binder.require(!x.sizes.empty() && x.sizes.back() > 0, "x has no inputs");
  LinearU8S8Call call;
  call.inputs = call.x_stride = x.sizes.back();
  call.outputs = call.y_stride = call.residual_stride = binder.attributes().integer("outputs");
  binder.require(call.outputs > 0 && call.outputs < kLargestBytes, "outputs is ", call.outputs);
  binder.require_product({call.outputs + kLinearPanel, call.inputs + kLinearPanel});
  call.rows = x.elements() / call.inputs;
  binder.require_dtype(binder.operand(1), Dtype::i8);
  binder.require_sizes(binder.operand(1), {packed_u8s8_size(call.outputs, call.inputs, {})});
  binder.require_row_major(binder.operand(1));
  read_output(binder, call, call.rows, call.outputs);
  call.narrows = y.dtype == Dtype::bf16;
  Sizes sizes = x.sizes;
  sizes.back() = call.outputs;
  check_result(binder, y, sizes, call.out_inverse != 0, Format::row_major);
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
  binder.require_dtype(x, Dtype::u8);
  ConvU8S8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  call.in_channels = sizes.in_channels;
  call.out_channels = call.y_stride = call.residual_stride = sizes.out_channels;
  call.groups = sizes.groups;
  const int64_t rows = call.window.batch * call.window.out_height * call.window.out_width;
  const int64_t block = packed_u8s8_size(call.out_channels / call.groups, call.in_channels / call.groups,
                                         choose_runs(call.window, call.groups));
  binder.require_dtype(binder.operand(1), Dtype::i8);
  binder.require_sizes(binder.operand(1), {call.groups * block});
  read_conv_output(binder, call, y, call.out_channels);
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
  if (can_run(Isa::avx2)) binder.point_scratch(&ConvU8S8Call::scratch, binder.parts() * scratch);
}

void bind_winograd_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, Dtype::u8);
  WinogradU8S8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  require_winograd_window(binder, call.window, sizes.groups);
  binder.require(sizes.in_channels % kWinogradBytes == 0 && sizes.out_channels % kWinogradBytes == 0,
                 "it takes multiples of ", kWinogradBytes, " channels");
  call.tile = kWinogradByteTile, call.in_channels = sizes.in_channels;
  call.out_channels = call.y_stride = call.residual_stride = sizes.out_channels;
  const int64_t packed = packed_winograd_u8s8_size(call.out_channels, call.in_channels);
  binder.require_dense(binder.operand(1), Dtype::i16, {packed});
  read_conv_output(binder, call, y, call.out_channels);
  require_border(binder, call.in_channels);
  const auto products = static_cast<double>(y.elements()) * static_cast<double>(call.in_channels * 9);
  binder.set_products(products, Dtype::u8);
  binder.set_work(products / 4, static_cast<double>(x.elements() + 4 * y.elements() + 2 * packed));
  choose_winograd_u8s8_blocks(call, binder.parts());
  binder.set_call("winograd_u8s8", call);
  binder.point(&WinogradU8S8Call::x, x);
  binder.point(&WinogradU8S8Call::weight, binder.operand(1));
  binder.point(&WinogradU8S8Call::zeros, binder.operand(8));
  binder.point_scratch(&WinogradU8S8Call::scratch, binder.parts() * winograd_u8s8_scratch(call));
  point_output<WinogradU8S8Call>(binder, y);
}

void bind_depthwise_u8s8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, Dtype::u8);
  DepthwiseU8S8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  const Window& w = call.window;
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  binder.require(takes_depthwise_u8s8(w), "the window is ", w.kernel_height, "x", w.kernel_width, ", dilated by ",
                 w.dilation_width, ": too large");
  call.channels = call.y_stride = call.residual_stride = sizes.in_channels;
  binder.require_dense(binder.operand(1), Dtype::i8, {packed_depthwise_u8s8_size(call.channels, w)});
  read_conv_output(binder, call, y, call.channels);
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
  binder.require_dtype(x, Dtype::u8);
  binder.require(x.sizes.size() == 4 && y.sizes.size() == 4, "values must have 4 dimensions");
  binder.require(x.is_dense(Format::channels_last) && x.sizes[1] > 0, "x is not channels-last");
  const std::vector<int64_t> kernel = binder.attributes().integers("kernel");
  binder.require(kernel.size() == 2 && kernel[0] > 0 && kernel[1] > 0, "the window has no two sizes");
  LinearU8S8Call call;
  call.rows = x.sizes[0] * x.sizes[2] * x.sizes[3];
  call.inputs = call.x_stride = x.sizes[1];
  call.spread = {x.sizes[3], kernel[0], kernel[1], y.sizes[1]};
  binder.require(y.sizes[1] > 0 && y.sizes[1] % kU8S8Panel == 0, "outputs do not fill panels");
  binder.require_product({y.sizes[1], kernel[0], kernel[1], call.inputs + kLinearPanel, 4});
  call.outputs = y.sizes[1] * kernel[0] * kernel[1];
  call.y_stride = y.sizes[1] * kernel[1];
  binder.require_dtype(binder.operand(1), Dtype::i8);
  binder.require_sizes(binder.operand(1), {packed_u8s8_size(call.outputs, call.inputs, {})});
  read_output(binder, call, call.rows, call.outputs);
  call.narrows = y.dtype == Dtype::bf16;
  binder.require(!binder.has_operand(5) && !binder.has_operand(6), "it takes no residual and no scales of rows");
  check_result(binder, y, {x.sizes[0], y.sizes[1], x.sizes[2] * kernel[0], x.sizes[3] * kernel[1]},
               call.out_inverse != 0, Format::channels_last);
  binder.set_call("linear_u8s8", call);
  binder.point(&LinearU8S8Call::x, x);
  binder.point(&LinearU8S8Call::weight, binder.operand(1));
  point_output<LinearU8S8Call>(binder, y);
  const auto products = static_cast<double>(call.rows) * static_cast<double>(call.inputs * call.outputs);
  binder.set_products(products, Dtype::u8);
  binder.set_work(products / product_speed(call.rows), static_cast<double>(x.elements() + 4 * y.elements()));
}

}  // namespace lissome

// conv_f32, winograd_f32, depthwise and depthwise_transposed in f32 and bf16, separable_f32, fold_columns and the
// pools: channels-last values of rank 4 (N, C, H, W), or rank 3 (N, C, L) as height 1. conv: operands x, packed weight,
// bias, residual, zeros. Attributes: kernel, stride, padding (before), dilation, groups; winograd_f32, whose x,
// residual and y may be bf16, also "tile". separable_f32: those of the product, whose window is none, then weight and
// bias of the depthwise convolution, whose window the attributes tell, and whose activation is "first_activation",
// "first_alpha", "first_beta". fold_columns: operands columns [N, H, W, taps * C], bias. conv_f32 also "finite_weight",
// see step_linear.cpp, and "planes": x is in row order.
#include "lissome/runtime/step_rows.h"

namespace lissome {
namespace {

// Two numbers, (height, width), from an attribute with one number a spatial dimension.
std::pair<int64_t, int64_t> read_pair(const StepBinder& binder, std::string_view name, size_t spatial, int64_t least,
                                      int64_t fallback) {
  if (!binder.attributes().find(name)) return {fallback, fallback};
  const std::vector<int64_t> numbers = binder.attributes().integers(name);
  binder.require(numbers.size() == spatial, quote(name), " has ", numbers.size(), " numbers, must have ", spatial);
  for (const int64_t number : numbers)
    binder.require(number >= least && number < 1 << 20, quote(name), " holds ", number);
  if (spatial == 1) return {fallback, numbers[0]};
  return {numbers[0], numbers[1]};
}

}  // namespace

void read_window_numbers(const StepBinder& binder, size_t spatial, Window& window) {
  std::tie(window.kernel_height, window.kernel_width) = read_pair(binder, "kernel", spatial, 1, 1);
  std::tie(window.stride_height, window.stride_width) = read_pair(binder, "stride", spatial, 1, 1);
  std::tie(window.dilation_height, window.dilation_width) = read_pair(binder, "dilation", spatial, 1, 1);
  std::tie(window.pad_height, window.pad_width) = read_pair(binder, "padding", spatial, 0, 0);
}

namespace {

template <typename Call>
void read_output(StepBinder& binder, Call& call, const PlacedValue& y, int64_t channels) {
  call.y_stride = call.residual_stride = channels;
  call.epilogue = read_epilogue(binder);
  call.residual_place = read_residual_place(binder, 3);
  if (binder.has_operand(2)) binder.require_dense(binder.operand(2), Dtype::f32, {channels});
  if (binder.has_operand(3)) {
    binder.require_dtype(binder.operand(3), y.dtype);
    binder.require_sizes(binder.operand(3), y.sizes);
    binder.require(binder.operand(3).is_dense(Format::channels_last), "the residual is not channels-last");
  }
}

template <typename Call, typename Item = float>
void point_output(StepBinder& binder, const PlacedValue& y) {
  if (binder.has_operand(2)) binder.point(static_cast<const float * Call::*>(&Call::bias), binder.operand(2));
  if (binder.has_operand(3)) binder.point(static_cast<const Item * Call::*>(&Call::residual), binder.operand(3));
  binder.point(static_cast<Item * Call::*>(&Call::y), y);
}

}  // namespace

WindowSizes read_window(const StepBinder& binder, const PlacedValue& x, const PlacedValue& y, Window& window,
                        Format x_format) {
  const size_t rank = x.sizes.size();
  binder.require((rank == 3 || rank == 4) && y.sizes.size() == rank, "values must have 3 or 4 dimensions");
  binder.require(x.is_dense(x_format) && y.is_dense(Format::channels_last), "values must be ",
                 x_format == Format::channels_last ? "channels-last" : "planes, and channels-last");
  binder.require(x.sizes[1] > 0 && y.sizes[1] > 0, "there are no channels");
  binder.require(x.elements() > 0 || y.elements() == 0, "x is empty");
  const size_t spatial = rank - 2;
  window.batch = x.sizes[0];
  window.width = x.sizes[rank - 1];
  window.out_width = y.sizes[rank - 1];
  if (rank == 4) window.height = x.sizes[2], window.out_height = y.sizes[2];
  read_window_numbers(binder, spatial, window);
  WindowSizes sizes{x.sizes[1], y.sizes[1], binder.attributes().integer("groups", 1)};
  binder.require(y.sizes[0] == window.batch, "batches differ");
  binder.require(sizes.groups > 0 && sizes.in_channels % sizes.groups == 0 && sizes.out_channels % sizes.groups == 0,
                 "channels do not divide into groups");
  // Packed weights are rounded up to whole panels, per group.
  binder.require_product({sizes.out_channels + sizes.groups * kLinearPanel,
                          sizes.in_channels / sizes.groups + kLinearPanel, window.kernel_height, window.kernel_width,
                          4});
  return sizes;
}

void bind_conv_f32(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, Dtype::f32);
  binder.require_dtype(y, Dtype::f32);
  ConvF32Call call;
  const bool planes = binder.attributes().integer("planes", 0) != 0;
  const WindowSizes sizes = read_window(binder, x, y, call.window, planes ? Format::row_major : Format::channels_last);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  binder.require(!planes || call.groups == 1, "planes are not cut into groups");
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  const int64_t packed = packed_conv_f32_size(call.out_channels, call.in_channels, call.groups, taps);
  binder.require_dense(binder.operand(1), Dtype::f32, {packed});
  binder.require_dense(binder.operand(4), Dtype::f32, {call.in_channels});
  read_output(binder, call, y, call.out_channels);
  const auto pixels = static_cast<double>(y.elements() / call.out_channels);
  binder.set_products(pixels * static_cast<double>(call.out_channels * call.in_channels / call.groups * taps));
  binder.set_work(pixels * static_cast<double>(call.out_channels * call.in_channels / call.groups * taps),
                  4.0 * static_cast<double>(x.elements() + y.elements() + packed));
  binder.set_call("conv_f32", call);
  const int64_t scratch = !planes && may_cut_into_thirds(binder, "conv_f32") ? conv_f32_scratch(call) : 0;
  if (planes) binder.point_scratch(&ConvF32Call::band, binder.parts() * conv_f32_band(call) * 4);
  if (scratch > 0) binder.point_scratch(&ConvF32Call::scratch, binder.parts() * scratch * 4);
  binder.point(&ConvF32Call::x, x);
  binder.point(&ConvF32Call::weight, binder.operand(1));
  binder.point(&ConvF32Call::zeros, binder.operand(4));
  point_output<ConvF32Call>(binder, y);
}

void require_few_phases(const StepBinder& binder, const Window& window) {
  binder.require(window.stride_height <= kMostPhases && window.stride_width <= kMostPhases, "strides are larger than ",
                 kMostPhases);
}

void require_winograd_window(const StepBinder& binder, const Window& w, int64_t groups) {
  binder.require(w.kernel_height == 3 && w.kernel_width == 3 && w.stride_height == 1 && w.stride_width == 1 &&
                     w.dilation_height == 1 && w.dilation_width == 1 && groups == 1,
                 "it takes 3x3 windows of stride 1, one group");
}

namespace {

template <typename Call, typename Item>
void bind_winograd(StepBinder& binder, std::string_view kernel, Dtype dtype) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, dtype);
  binder.require_dtype(y, dtype);
  Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  require_winograd_window(binder, call.window, sizes.groups);
  call.tile = binder.attributes().integer("tile", 0);
  binder.require(call.tile == 2 || call.tile == 4, quote("tile"), " is ", call.tile, ", must be 2 or 4");
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels;
  binder.require_product({call.out_channels + kLinearPanel, call.in_channels, 36, 4});
  const int64_t packed = packed_winograd_f32_size(call.out_channels, call.in_channels, call.tile);
  binder.require_dense(binder.operand(1), Dtype::f32, {packed});
  binder.require_dense(binder.operand(4), dtype, {call.in_channels});
  read_output(binder, call, y, call.out_channels);
  const auto products = static_cast<double>(y.elements()) * static_cast<double>(call.in_channels * 9);
  binder.set_products(products, dtype);
  binder.set_work(products / 2, static_cast<double>((x.elements() + y.elements()) * item_size(dtype) +
                                                    packed * item_size(Dtype::f32)));
  choose_winograd_blocks(call, binder.parts());
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::weight, binder.operand(1));
  binder.point(&Call::zeros, binder.operand(4));
  binder.point_scratch(&Call::scratch,
                       binder.parts() * winograd_scratch_size(call) * static_cast<int64_t>(sizeof(float)));
  point_output<Call, Item>(binder, y);
}

}  // namespace

void bind_winograd_f32(StepBinder& binder) {
  if (binder.operand(0).dtype == Dtype::bf16) {
    bind_winograd<WinogradBf16Call, uint16_t>(binder, "winograd_bf16", Dtype::bf16);
  } else {
    bind_winograd<WinogradF32Call, float>(binder, "winograd_f32", Dtype::f32);
  }
}

namespace {

template <typename Call, typename Item>
void bind_depthwise(StepBinder& binder, std::string_view kernel, Dtype dtype, bool transposed = false) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, dtype);
  binder.require_dtype(y, dtype);
  Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  if (transposed) require_few_phases(binder, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  call.channels = sizes.in_channels;
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require_dense(binder.operand(1), Dtype::f32, {taps * call.channels});
  read_output(binder, call, y, call.channels);
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::weight, binder.operand(1));
  point_output<Call, Item>(binder, y);
  // Each pixel meets every tap: of y, or transposed of x.
  const auto products = static_cast<double>((transposed ? x : y).elements() * taps);
  binder.set_products(products);
  binder.set_work(4.0 * products, static_cast<double>((x.elements() + y.elements()) * item_size(dtype)));
}

}  // namespace

void bind_depthwise_bf16(StepBinder& binder) {
  bind_depthwise<DepthwiseBf16Call, uint16_t>(binder, "depthwise_bf16", Dtype::bf16);
}

void bind_depthwise_f32(StepBinder& binder) {
  bind_depthwise<DepthwiseF32Call, float>(binder, "depthwise_f32", Dtype::f32);
}

void bind_depthwise_transposed_bf16(StepBinder& binder) {
  bind_depthwise<DepthwiseBf16Call, uint16_t>(binder, "depthwise_transposed_bf16", Dtype::bf16, true);
}

void bind_depthwise_transposed_f32(StepBinder& binder) {
  bind_depthwise<DepthwiseF32Call, float>(binder, "depthwise_transposed_f32", Dtype::f32, true);
}

void bind_separable_f32(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, Dtype::f32);
  binder.require_dtype(y, Dtype::f32);
  SeparableF32Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  const Window& w = call.window;
  call.channels = sizes.in_channels, call.outputs = sizes.out_channels;
  const int64_t packed = packed_linear_f32_size(call.outputs, call.channels);
  const int64_t taps = w.kernel_height * w.kernel_width;
  binder.require(sizes.groups == 1, "the product has groups");
  binder.require_dense(binder.operand(1), Dtype::f32, {packed});
  binder.require_dense(binder.operand(4), Dtype::f32, {taps * call.channels});
  if (binder.has_operand(5)) binder.require_dense(binder.operand(5), Dtype::f32, {call.channels});
  read_output(binder, call, y, call.outputs);
  call.first_epilogue = read_epilogue(binder, "first_");
  const auto product = static_cast<double>(y.elements()) * static_cast<double>(call.channels);
  const auto first = product / static_cast<double>(call.outputs) * static_cast<double>(taps);
  binder.set_products(first + product);
  binder.set_work(4 * first + product, 4.0 * static_cast<double>(x.elements() + y.elements() + packed));
  binder.set_call("separable_f32", call);
  binder.point_scratch(&SeparableF32Call::scratch, binder.parts() * separable_f32_scratch(call) * 4);
  binder.point(&SeparableF32Call::x, x);
  binder.point(&SeparableF32Call::weight, binder.operand(1));
  binder.point(&SeparableF32Call::first_weight, binder.operand(4));
  if (binder.has_operand(5)) binder.point(&SeparableF32Call::first_bias, binder.operand(5));
  point_output<SeparableF32Call>(binder, y);
}

void bind_fold_columns(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  const size_t rank = y.sizes.size();
  binder.require_dtype(x, Dtype::f32);
  binder.require_dtype(y, Dtype::f32);
  binder.require_row_major(x);
  binder.require((rank == 3 || rank == 4) && x.sizes.size() == rank, "values must have 3 or 4 dimensions");
  binder.require(y.is_dense(Format::channels_last) && y.sizes[1] > 0, "the result is not channels-last");
  FoldColumnsCall call;
  Window& w = call.window;
  read_window_numbers(binder, rank - 2, w);
  require_few_phases(binder, w);
  call.channels = y.sizes[1];
  w.batch = x.sizes[0], w.width = x.sizes[rank - 2], w.out_width = y.sizes[rank - 1];
  if (rank == 4) w.height = x.sizes[1], w.out_height = y.sizes[2];
  const int64_t taps = w.kernel_height * w.kernel_width;
  binder.require_product({taps, call.channels, 4});
  binder.require(y.sizes[0] == w.batch, "batches differ");
  binder.require(x.sizes[rank - 1] == taps * call.channels, "there are ", x.sizes[rank - 1], " columns, must be ",
                 taps * call.channels);
  call.epilogue = read_epilogue(binder);
  if (binder.has_operand(1)) binder.require_dense(binder.operand(1), Dtype::f32, {call.channels});
  binder.set_call("fold_columns", call);
  binder.point(&FoldColumnsCall::columns, x);
  if (binder.has_operand(1)) binder.point(&FoldColumnsCall::bias, binder.operand(1));
  binder.point(&FoldColumnsCall::y, y);
  binder.set_work(0, 4.0 * static_cast<double>(x.elements() + y.elements()));
}

void read_average(const StepBinder& binder, PoolCall& call) {
  call.counts_padding = binder.attributes().integer("counts_padding", 1) != 0;
  call.divisor = binder.attributes().integer("divisor", 0);
  call.pad_bottom = call.window.pad_height, call.pad_right = call.window.pad_width;
}

void bind_pool(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  PoolCall call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  call.channels = sizes.in_channels;
  call.average = binder.attributes().integer("average", 0) != 0;
  read_average(binder, call);
  const bool bytes = x.dtype == Dtype::u8 && !call.average, narrow = x.dtype == Dtype::bf16;
  binder.require((bytes || narrow || x.dtype == Dtype::f32) && y.dtype == x.dtype,
                 "pooling takes f32, bf16, or the maximum of u8");
  binder.set_call(bytes ? "pool_u8" : narrow ? "pool_bf16" : "pool_f32", call);
  binder.point(&PoolCall::x, x);
  binder.point(&PoolCall::y, y);
  const auto taps = static_cast<double>(call.window.kernel_height * call.window.kernel_width);
  binder.set_work(4 * taps * static_cast<double>(y.elements()),
                  static_cast<double>((x.elements() + y.elements()) * item_size(x.dtype)));
}

}  // namespace lissome

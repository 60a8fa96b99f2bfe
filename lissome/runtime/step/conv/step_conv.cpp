// conv_f32, winograd_f32, depthwise and depthwise_transposed in f32 and bf16, separable_f32, col2im and the
// pools: channels-last values of rank 4 (N, C, H, W), or rank 3 (N, C, L) as height 1. conv: operands x, packed weight,
// bias, residual, zeros. Attributes: kernel, stride, padding (before), dilation, groups; winograd_f32, whose x,
// residual and y may be bf16, also "tile". separable_f32: those of the product, whose window is none, then weight and
// bias of the depthwise convolution, whose window the attributes tell, and whose activation is "first_activation",
// "first_alpha", "first_beta". col2im: operands columns [N, H, W, taps * C], bias. conv_f32 also "finite_weight",
// see step_linear.cpp, and "planes": x is in row order.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_rules.h"

namespace lissome {
namespace {

constexpr ValueRule kX = {"x", {Dtype::f32}, ValueLayout::channels_last};
constexpr ValueRule kXOfEither = {"x", {Dtype::f32, Dtype::bf16}, ValueLayout::channels_last};
constexpr ValueRule kWeight = {"weight", {Dtype::f32}};
constexpr ValueRule kBias = {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional};
constexpr ValueRule kResidual = {"residual", {Dtype::f32}, ValueLayout::channels_last, Presence::optional};
constexpr ValueRule kResidualBf16 = {"residual", {Dtype::bf16}, ValueLayout::channels_last, Presence::optional};

constexpr ValueRule kConvOperands[] = {
    {"x", {Dtype::f32}, ValueLayout::dense}, kWeight, kBias, kResidual, {"zeros", {Dtype::f32}}};
constexpr ValueRule kWinogradOperands[] = {
    kXOfEither,
    kWeight,
    kBias,
    {"residual", {Dtype::f32, Dtype::bf16}, ValueLayout::channels_last, Presence::optional},
    {"zeros", {Dtype::f32, Dtype::bf16}},
};
constexpr ValueRule kDepthwiseOperands[] = {kX, kWeight, kBias, kResidual};
constexpr ValueRule kDepthwiseBf16Operands[] = {
    {"x", {Dtype::bf16}, ValueLayout::channels_last}, kWeight, kBias, kResidualBf16};
constexpr ValueRule kSeparableOperands[] = {
    kX,
    kWeight,
    kBias,
    kResidual,
    {"first_weight", {Dtype::f32}},
    {"first_bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
};
constexpr ValueRule kFoldOperands[] = {{"columns", {Dtype::f32}}, kBias};
constexpr ValueRule kPoolOperands[] = {{"x", {Dtype::f32, Dtype::bf16, Dtype::u8}, ValueLayout::channels_last}};

constexpr ValueRule kY[] = {{"y", {Dtype::f32}, ValueLayout::channels_last}};
constexpr ValueRule kYBf16[] = {{"y", {Dtype::bf16}, ValueLayout::channels_last}};
constexpr ValueRule kYOfEither[] = {{"y", {Dtype::f32, Dtype::bf16}, ValueLayout::channels_last}};
constexpr ValueRule kPooled[] = {{"y", {Dtype::f32, Dtype::bf16, Dtype::u8}, ValueLayout::channels_last}};

constexpr AttributeRule kConvOwn[] = {flag_rule("finite_weight"), flag_rule("planes")};
constexpr AttributeRule kWinogradOwn[] = {integer_rule("tile", 2, 4, true)};
constexpr AttributeRule kFirstEpilogue[] = {
    text_rule("first_activation", is_epilogue_activation),
    any_number_rule("first_alpha"),
    any_number_rule("first_beta"),
};
constexpr AttributeRule kOneGroup[] = {integer_rule("groups", 1, 1)};
constexpr AttributeRule kPoolOwn[] = {flag_rule("average")};

constexpr auto kDepthwiseAttributes =
    join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kEpilogueRules, kResidualRules);
constexpr auto kConvAttributes =
    join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kEpilogueRules, kResidualRules, kConvOwn);
constexpr auto kWinogradAttributes =
    join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kEpilogueRules, kResidualRules, kWinogradOwn);
constexpr auto kSeparableAttributes =
    join_rules(kPoolWindowRules, kDilationRules, kEpilogueRules, kResidualRules, kFirstEpilogue);
constexpr auto kFoldAttributes = join_rules(kPoolWindowRules, kDilationRules, kOneGroup, kEpilogueRules);
constexpr auto kPoolAttributes = join_rules(kPoolWindowRules, kDilationRules, kAverageRules, kPoolOwn);

constexpr StepSchema kConvSchemas[] = {
    {"conv_f32", kConvOperands, kY, kConvAttributes},
    {"winograd_f32", kWinogradOperands, kYOfEither, kWinogradAttributes},
    {"depthwise_f32", kDepthwiseOperands, kY, kDepthwiseAttributes},
    {"depthwise_bf16", kDepthwiseBf16Operands, kYBf16, kDepthwiseAttributes},
    {"depthwise_transposed_f32", kDepthwiseOperands, kY, kDepthwiseAttributes},
    {"depthwise_transposed_bf16", kDepthwiseBf16Operands, kYBf16, kDepthwiseAttributes},
    {"separable_f32", kSeparableOperands, kY, kSeparableAttributes},
    {"col2im", kFoldOperands, kY, kFoldAttributes},
    {"pool", kPoolOperands, kPooled, kPoolAttributes},
};

template <typename Call>
void read_output(StepBinder& binder, Call& call, const PlacedValue& y, int64_t channels) {
  call.y_stride = call.residual_stride = channels;
  call.epilogue = read_epilogue(binder);
  call.residual_place = read_residual_place(binder, 3);
  if (binder.has_operand(2)) binder.require_sizes(binder.operand(2), {channels});
  if (binder.has_operand(3)) {
    binder.require_dtype(binder.operand(3), y.dtype);
    binder.require_sizes(binder.operand(3), y.sizes);
  }
}

template <typename Call, typename Item = float>
void point_output(StepBinder& binder, const PlacedValue& y) {
  if (binder.has_operand(2)) binder.point(static_cast<const float * Call::*>(&Call::bias), binder.operand(2));
  if (binder.has_operand(3)) binder.point(static_cast<const Item * Call::*>(&Call::residual), binder.operand(3));
  binder.point(static_cast<Item * Call::*>(&Call::y), y);
}

}  // namespace

std::span<const StepSchema> conv_schemas() { return kConvSchemas; }

void bind_conv_f32(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  ConvF32Call call;
  const bool planes = binder.attributes().integer("planes", 0) != 0;
  const WindowSizes sizes = read_window(binder, x, y, call.window, planes ? Format::row_major : Format::channels_last);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  binder.require(!planes || call.groups == 1, "planes are not cut into groups");
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  const int64_t packed = packed_conv_f32_size(call.out_channels, call.in_channels, call.groups, taps);
  binder.require_sizes(binder.operand(1), {packed});
  binder.require_sizes(binder.operand(4), {call.in_channels});
  read_output(binder, call, y, call.out_channels);
  const double products =
      static_cast<double>(y.elements()) * static_cast<double>(call.in_channels / call.groups * taps);
  binder.set_products(products);
  binder.set_work(products, 4.0 * static_cast<double>(x.elements() + y.elements() + packed));
  binder.set_call("conv_f32", call);
  const int64_t scratch = !planes && may_split_bf16x3(binder, "conv_f32") ? conv_f32_scratch(call) : 0;
  if (planes) binder.point_scratch(&ConvF32Call::band, {binder.parts(), conv_f32_band(call), 4});
  if (scratch > 0) binder.point_scratch(&ConvF32Call::scratch, {binder.parts(), scratch, 4});
  binder.point(&ConvF32Call::x, x);
  binder.point(&ConvF32Call::weight, binder.operand(1));
  binder.point(&ConvF32Call::zeros, binder.operand(4));
  point_output<ConvF32Call>(binder, y);
}

namespace {

template <typename Call, typename Item>
void bind_winograd(StepBinder& binder, std::string_view kernel, Dtype dtype) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(y, dtype);
  Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  require_winograd_window(binder, call.window, sizes.groups);
  call.tile = binder.attributes().integer("tile");
  binder.require(call.tile == 2 || call.tile == 4, quote("tile"), " is ", call.tile, ", must be 2 or 4");
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels;
  binder.require_product({call.out_channels + kLinearPanel, call.in_channels, 36, 4});
  const int64_t packed = packed_winograd_f32_size(call.out_channels, call.in_channels, call.tile);
  binder.require_sizes(binder.operand(1), {packed});
  binder.require_dtype(binder.operand(4), dtype);
  binder.require_sizes(binder.operand(4), {call.in_channels});
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
  binder.point_scratch(&Call::scratch, {binder.parts(), winograd_scratch_size(call), sizeof(float)});
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
  Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window, Format::channels_last, transposed);
  if (transposed) require_few_phases(binder, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  call.channels = sizes.in_channels;
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require_sizes(binder.operand(1), {taps * call.channels});
  read_output(binder, call, y, call.channels);
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::weight, binder.operand(1));
  point_output<Call, Item>(binder, y);
  // Each pixel meets every tap: of y, or transposed of x.
  const auto products = static_cast<double>((transposed ? x : y).elements()) * static_cast<double>(taps);
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
  SeparableF32Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  const Window& w = call.window;
  call.channels = sizes.in_channels, call.outputs = sizes.out_channels;
  const int64_t packed = packed_linear_f32_size(call.outputs, call.channels);
  const int64_t taps = w.kernel_height * w.kernel_width;
  binder.require_sizes(binder.operand(1), {packed});
  binder.require_sizes(binder.operand(4), {taps * call.channels});
  if (binder.has_operand(5)) binder.require_sizes(binder.operand(5), {call.channels});
  read_output(binder, call, y, call.outputs);
  call.first_epilogue = read_epilogue(binder, "first_");
  const auto product = static_cast<double>(y.elements()) * static_cast<double>(call.channels);
  const auto first = product / static_cast<double>(call.outputs) * static_cast<double>(taps);
  binder.set_products(first + product);
  binder.set_work(4 * first + product, 4.0 * static_cast<double>(x.elements() + y.elements() + packed));
  binder.set_call("separable_f32", call);
  binder.point_scratch(&SeparableF32Call::scratch, {binder.parts(), separable_f32_scratch(call), 4});
  binder.point(&SeparableF32Call::x, x);
  binder.point(&SeparableF32Call::weight, binder.operand(1));
  binder.point(&SeparableF32Call::first_weight, binder.operand(4));
  if (binder.has_operand(5)) binder.point(&SeparableF32Call::first_bias, binder.operand(5));
  point_output<SeparableF32Call>(binder, y);
}

void bind_col2im(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  const size_t rank = y.sizes.size();
  binder.require((rank == 3 || rank == 4) && x.sizes.size() == rank, "values must have 3 or 4 dimensions");
  binder.require(y.sizes[1] > 0, "there are no channels");
  binder.require(x.elements() > 0 || y.elements() == 0, "there are no columns");
  Col2ImCall call;
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
  require_geometry(binder, w, call.channels, true, y.elements() == 0);
  if (y.elements() == 0) w.batch = 0;
  call.epilogue = read_epilogue(binder);
  if (binder.has_operand(1)) binder.require_sizes(binder.operand(1), {call.channels});
  binder.set_call("col2im", call);
  binder.point(&Col2ImCall::columns, x);
  if (binder.has_operand(1)) binder.point(&Col2ImCall::bias, binder.operand(1));
  binder.point(&Col2ImCall::y, y);
  binder.set_work(0, 4.0 * static_cast<double>(x.elements() + y.elements()));
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
  binder.require(y.dtype == x.dtype, "x is ", dtype_name(x.dtype), ", y ", dtype_name(y.dtype));
  binder.require(bytes || x.dtype != Dtype::u8, "bytes are not averaged");
  binder.set_call(bytes ? "pool_u8" : narrow ? "pool_bf16" : "pool_f32", call);
  binder.point(&PoolCall::x, x);
  binder.point(&PoolCall::y, y);
  const auto taps = static_cast<double>(call.window.kernel_height * call.window.kernel_width);
  binder.set_work(4 * taps * static_cast<double>(y.elements()),
                  static_cast<double>((x.elements() + y.elements()) * item_size(x.dtype)));
}

}  // namespace lissome

// The training forms of convolutions and max pools; attributes as in step_conv.cpp, values channels-last.
//   pack_conv_f32: operand weight [out, in / groups, window], result packed. Attribute "packing": forward or data.
//   pack_conv_bf16: the same in bf16 or f32, for conv_bf16; a "transposed" weight is [in, out, window].
//   conv_data_f32: operands dy, packed weight, bias, zeros; result dx. conv_weight_f32, conv_weight_bf16: operands x,
//   dy; result dw (f32), or, with attribute "splits", [splits, ...] that add up to it.
//   max_pool_indices: operand x; results y and places (u8). max_pool_gradient: operands dy, places; result dx. Values
//   are f32 or bf16.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_rules.h"

namespace lissome {
namespace {

bool is_packing(std::string_view word) { return word == "forward" || word == "data"; }

constexpr ValueRule kPackOperands[] = {{"weight", {Dtype::f32}}};
constexpr ValueRule kPackBf16Operands[] = {{"weight", {Dtype::bf16, Dtype::f32}}};
constexpr ValueRule kPacked[] = {{"packed", {Dtype::f32}}};
constexpr ValueRule kPackedBf16[] = {{"packed", {Dtype::bf16}}};
constexpr ValueRule kDataOperands[] = {
    {"dy", {Dtype::f32}, ValueLayout::channels_last},
    {"weight", {Dtype::f32}},
    {"bias", {Dtype::f32}, ValueLayout::row_major, Presence::optional},
    {"zeros", {Dtype::f32}},
};
constexpr ValueRule kDataResults[] = {{"dx", {Dtype::f32}, ValueLayout::channels_last}};
constexpr ValueRule kWeightOperands[] = {
    {"x", {Dtype::f32}, ValueLayout::channels_last},
    {"dy", {Dtype::f32}, ValueLayout::channels_last},
};
constexpr ValueRule kWeightBf16Operands[] = {
    {"x", {Dtype::bf16}, ValueLayout::channels_last},
    {"dy", {Dtype::bf16}, ValueLayout::channels_last},
};
constexpr ValueRule kWeightResults[] = {{"dw", {Dtype::f32}}};
constexpr DtypeSet kPooledDtypes = {Dtype::f32, Dtype::bf16};
constexpr ValueRule kPlacesOperands[] = {{"x", kPooledDtypes, ValueLayout::channels_last}};
constexpr ValueRule kPlacesResults[] = {
    {"y", kPooledDtypes, ValueLayout::channels_last},
    {"places", {Dtype::u8}, ValueLayout::channels_last},
};
constexpr ValueRule kPoolGradientOperands[] = {
    {"dy", kPooledDtypes, ValueLayout::channels_last},
    {"places", {Dtype::u8}, ValueLayout::channels_last},
};
constexpr ValueRule kPoolGradientResults[] = {{"dx", kPooledDtypes, ValueLayout::channels_last}};

constexpr AttributeRule kPackOwn[] = {text_rule("packing", is_packing)};
constexpr AttributeRule kPackBf16Own[] = {flag_rule("transposed")};
constexpr int64_t kMostSplits = 64;
constexpr AttributeRule kWeightOwn[] = {integer_rule("splits", 0, kMostSplits)};

constexpr auto kPackAttributes = join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kPackOwn);
constexpr auto kPackBf16Attributes = join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kPackBf16Own);
constexpr auto kDataAttributes = join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kEpilogueRules);
constexpr auto kWeightAttributes = join_rules(kPoolWindowRules, kDilationRules, kGroupRules, kWeightOwn);
constexpr auto kMaxPoolAttributes = join_rules(kPoolWindowRules, kDilationRules);

constexpr StepSchema kConvGradientSchemas[] = {
    {"pack_conv_f32", kPackOperands, kPacked, kPackAttributes},
    {"pack_conv_bf16", kPackBf16Operands, kPackedBf16, kPackBf16Attributes},
    {"conv_data_f32", kDataOperands, kDataResults, kDataAttributes},
    {"conv_weight_f32", kWeightOperands, kWeightResults, kWeightAttributes},
    {"conv_weight_bf16", kWeightBf16Operands, kWeightResults, kWeightAttributes},
    {"max_pool_indices", kPlacesOperands, kPlacesResults, kMaxPoolAttributes},
    {"max_pool_gradient", kPoolGradientOperands, kPoolGradientResults, kMaxPoolAttributes},
};

void require_window(const StepBinder& binder, const Window& window) {
  binder.require(window.out_height > 0 && window.out_width > 0, "there are no pixels");
  require_few_phases(binder, window);
}

// The sizes of a weight that fits the window.
Sizes weight_sizes(const WindowSizes& sizes, const Window& window, size_t rank) {
  Sizes wanted = {sizes.out_channels, sizes.in_channels / sizes.groups, window.kernel_height, window.kernel_width};
  if (rank == 3) wanted.erase(wanted.begin() + 2);
  return wanted;
}

void set_convolution_work(StepBinder& binder, const WindowSizes& sizes, const Window& window, double numbers,
                          Dtype dtype = Dtype::f32) {
  const double products =
      static_cast<double>(window.batch * window.out_height * window.out_width) *
      static_cast<double>(sizes.out_channels) *
      static_cast<double>(sizes.in_channels / sizes.groups * window.kernel_height * window.kernel_width);
  binder.set_products(products, dtype);
  binder.set_work(products, 4.0 * numbers);
}

}  // namespace

std::span<const StepSchema> conv_gradient_schemas() { return kConvGradientSchemas; }

void bind_pack_conv_f32(StepBinder& binder) {
  const PlacedValue& weight = binder.operand(0);
  const size_t rank = weight.sizes.size();
  binder.require(rank == 3 || rank == 4, "the weight must have 3 or 4 dimensions");
  PackConvF32Call call;
  call.packing = binder.attributes().text("packing", "forward") == "data" ? ConvPacking::data : ConvPacking::forward;
  call.groups = binder.attributes().integer("groups", 1);
  binder.require(weight.elements() > 0, "the weight is empty");
  binder.require(weight.sizes[0] % call.groups == 0, "channels do not divide into groups");
  binder.require_product({call.groups, weight.sizes[1]});
  call.out_channels = weight.sizes[0], call.in_channels = weight.sizes[1] * call.groups;
  read_window_numbers(binder, rank - 2, call.window);
  call.window.out_height = call.window.out_width = 1;
  require_window(binder, call.window);
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require_sizes(weight, weight_sizes({call.in_channels, call.out_channels, call.groups}, call.window, rank));
  binder.require_product({call.out_channels + call.groups * kLinearPanel, weight.sizes[1] + kLinearPanel, taps, 4});
  const int64_t size = call.packing == ConvPacking::data
                           ? packed_conv_data_f32_size(call.out_channels, call.in_channels, call.groups, taps)
                           : packed_conv_f32_size(call.out_channels, call.in_channels, call.groups, taps);
  binder.require_sizes(binder.result(), {size});
  binder.set_call("pack_conv_f32", call);
  binder.point(&PackConvF32Call::weight, weight);
  binder.point(&PackConvF32Call::packed, binder.result());
  binder.set_work(0, 8.0 * static_cast<double>(size));
}

void bind_pack_conv_bf16(StepBinder& binder) {
  const PlacedValue& weight = binder.operand(0);
  const size_t rank = weight.sizes.size();
  binder.require(rank == 3 || rank == 4, "the weight must have 3 or 4 dimensions");
  PackConvBf16Call call;
  call.groups = binder.attributes().integer("groups", 1);
  call.transposed = binder.attributes().integer("transposed", 0) != 0;
  binder.require(weight.elements() > 0, "the weight is empty");
  binder.require(weight.sizes[0] % call.groups == 0, "channels do not divide into groups");
  binder.require_product({call.groups, weight.sizes[1]});
  call.out_channels = call.transposed ? weight.sizes[1] * call.groups : weight.sizes[0];
  call.in_channels = call.transposed ? weight.sizes[0] : weight.sizes[1] * call.groups;
  read_window_numbers(binder, rank - 2, call.window);
  call.window.out_height = call.window.out_width = 1;
  require_window(binder, call.window);
  const Window& w = call.window;
  Sizes wanted = {weight.sizes[0], weight.sizes[1], w.kernel_height, w.kernel_width};
  if (rank == 3) wanted.erase(wanted.begin() + 2);
  binder.require_sizes(weight, wanted);
  binder.require_product(
      {call.out_channels + call.groups * kBf16Panel,
       (call.in_channels / call.groups + kBf16Step) * (w.kernel_height * w.kernel_width + kMostPhases * kMostPhases),
       32});
  ConvBf16Call conv;
  conv.in_channels = call.in_channels, conv.out_channels = call.out_channels, conv.groups = call.groups;
  conv.transposed = call.transposed, conv.window = w;
  const int64_t size = packed_conv_bf16_size(conv);
  binder.require_sizes(binder.result(), {size});
  binder.set_call("pack_conv_bf16", call);
  if (weight.dtype == Dtype::f32) {
    binder.point(&PackConvBf16Call::wide_weight, weight);
  } else {
    binder.point(&PackConvBf16Call::weight, weight);
  }
  binder.point(&PackConvBf16Call::packed, binder.result());
  binder.set_work(8.0 * static_cast<double>(size), 4.0 * static_cast<double>(size));
}

void bind_conv_data_f32(StepBinder& binder) {
  const PlacedValue& dy = binder.operand(0);
  const PlacedValue& dx = binder.result();
  ConvDataF32Call call;
  const WindowSizes sizes = read_window(binder, dx, dy, call.window);
  require_window(binder, call.window);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  call.epilogue = read_epilogue(binder);
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  const int64_t packed = packed_conv_data_f32_size(call.out_channels, call.in_channels, call.groups, taps);
  binder.require_sizes(binder.operand(1), {packed});
  if (binder.has_operand(2)) binder.require_sizes(binder.operand(2), {call.in_channels});
  binder.require_sizes(binder.operand(3), {call.out_channels});
  set_convolution_work(binder, sizes, call.window, static_cast<double>(dx.elements() + dy.elements() + packed));
  binder.set_call("conv_data_f32", call);
  binder.point(&ConvDataF32Call::dy, dy);
  binder.point(&ConvDataF32Call::weight, binder.operand(1));
  if (binder.has_operand(2)) binder.point(&ConvDataF32Call::bias, binder.operand(2));
  binder.point(&ConvDataF32Call::zeros, binder.operand(3));
  binder.point(&ConvDataF32Call::dx, dx);
}

namespace {

template <typename T>
void bind_conv_weight(StepBinder& binder, std::string_view kernel, Dtype dtype) {
  using Call = ConvWeightCallOf<T>;
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& dy = binder.operand(1);
  Call call;
  const WindowSizes sizes = read_window(binder, x, dy, call.window);
  require_window(binder, call.window);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  call.splits = binder.attributes().integer("splits", 0);
  Sizes wanted = weight_sizes(sizes, call.window, x.sizes.size());
  if (call.splits > 0) wanted.insert(wanted.begin(), call.splits);
  if (call.splits == 0) call.splits = 1;
  binder.require_sizes(binder.result(), wanted);
  const int64_t dw = binder.result().elements();
  set_convolution_work(binder, sizes, call.window, static_cast<double>(x.elements() + dy.elements() + dw), dtype);
  binder.set_call(kernel, call);
  binder.point_scratch(&Call::scratch, {binder.parts(), conv_weight_scratch(call), 4});
  binder.point(&Call::x, x);
  binder.point(&Call::dy, dy);
  binder.point(&Call::dw, binder.result());
}

}  // namespace

void bind_conv_weight_bf16(StepBinder& binder) { bind_conv_weight<uint16_t>(binder, "conv_weight_bf16", Dtype::bf16); }
void bind_conv_weight_f32(StepBinder& binder) { bind_conv_weight<float>(binder, "conv_weight_f32", Dtype::f32); }

namespace {

int64_t read_pool_window(StepBinder& binder, const PlacedValue& x, const PlacedValue& y, Window& window) {
  const WindowSizes sizes = read_window(binder, x, y, window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  binder.require(x.dtype == y.dtype, "x is ", dtype_name(x.dtype), ", y ", dtype_name(y.dtype));
  binder.require(window.kernel_height * window.kernel_width <= 255, "the window has more than 255 taps");
  return sizes.in_channels;
}

template <typename T>
void bind_places(StepBinder& binder, std::string_view kernel) {
  using Call = MaxPoolCallOf<T>;
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  Call call;
  call.channels = read_pool_window(binder, x, y, call.window);
  binder.require_sizes(binder.result(1), y.sizes);
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  binder.point(&Call::y, y);
  binder.point(&Call::places, binder.result(1));
  binder.set_work(0, static_cast<double>(4 * x.elements() + 5 * y.elements()));
}

template <typename T>
void bind_pool_gradient(StepBinder& binder, std::string_view kernel) {
  using Call = MaxPoolGradientCallOf<T>;
  const PlacedValue& dy = binder.operand(0);
  const PlacedValue& dx = binder.result();
  Call call;
  call.channels = read_pool_window(binder, dx, dy, call.window);
  binder.require(dy.elements() > 0 || dx.elements() == 0, "dy is empty");
  binder.require_sizes(binder.operand(1), dy.sizes);
  binder.set_call(kernel, call);
  binder.point(&Call::dy, dy);
  binder.point(&Call::places, binder.operand(1));
  binder.point(&Call::dx, dx);
  binder.set_work(0, static_cast<double>(4 * dx.elements() + 5 * dy.elements()));
}

}  // namespace

void bind_max_pool_indices(StepBinder& binder) {
  if (binder.operand(0).dtype == Dtype::bf16) return bind_places<uint16_t>(binder, "max_pool_indices_bf16");
  bind_places<float>(binder, "max_pool_indices");
}

void bind_max_pool_gradient(StepBinder& binder) {
  if (binder.operand(0).dtype == Dtype::bf16) return bind_pool_gradient<uint16_t>(binder, "max_pool_gradient_bf16");
  bind_pool_gradient<float>(binder, "max_pool_gradient");
}

}  // namespace lissome

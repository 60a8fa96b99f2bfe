// The steps of batch norm in training form; values [N, C, ...] channels-last, f32 or bf16, sums [blocks, 2, C] f64, all
// else [C] in f32.
//   channel_sums: operands x, dy, mask, mean, scale and shift of the mask, places (x or dy may be absent, and all after
//   them). With places (u8), which max_pool_indices made, dy is that of what was pooled, and attributes tell the
//   window. channel_totals: operand sums; result total. batch_norm_statistics: operands sums, x, weight, bias, running
//   mean and variance; results mean, reciprocal deviation, new running mean and variance, scale, shift. Attributes
//   "momentum", "epsilon". batch_norm_gradients: operands sums, weight, reciprocal deviation, x; results gradients of
//   weight and bias, scale of dy, scale of x, shift. channel_affine: operands x, scale, shift, z, scale of z, center of
//   z, mask, scale and shift of the mask, or without x further what was pooled and places, as above: over that no
//   result may be written. "relu".
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_schema.h"

namespace lissome {
namespace {

constexpr DtypeSet kRowDtypes = {Dtype::f32, Dtype::bf16};

constexpr ValueRule rows_rule(std::string_view name, Presence presence = Presence::optional) {
  return {name, kRowDtypes, ValueLayout::channels_last, presence};
}
constexpr ValueRule channels_rule(std::string_view name, Presence presence = Presence::optional) {
  return {name, {Dtype::f32}, ValueLayout::row_major, presence};
}
constexpr ValueRule kPlaces = {"places", {Dtype::u8}, ValueLayout::channels_last, Presence::optional};
constexpr ValueRule kSums = {"sums", {Dtype::f64}};

constexpr ValueRule kSumsOperands[] = {
    rows_rule("x"),
    rows_rule("dy"),
    rows_rule("mask"),
    channels_rule("mean"),
    channels_rule("mask scale"),
    channels_rule("mask shift"),
    kPlaces,
};
constexpr ValueRule kSumsResults[] = {kSums};
constexpr ValueRule kTotalsOperands[] = {kSums};
constexpr ValueRule kTotalsResults[] = {channels_rule("total", Presence::required)};
constexpr ValueRule kStatisticsOperands[] = {
    kSums,
    rows_rule("x", Presence::required),
    channels_rule("weight"),
    channels_rule("bias"),
    channels_rule("running mean", Presence::required),
    channels_rule("running variance", Presence::required),
};
constexpr ValueRule kStatisticsResults[] = {
    channels_rule("mean", Presence::required),     channels_rule("reciprocal deviation", Presence::required),
    channels_rule("new mean", Presence::required), channels_rule("new variance", Presence::required),
    channels_rule("scale", Presence::required),    channels_rule("shift", Presence::required),
};
constexpr ValueRule kGradientsOperands[] = {
    kSums,
    channels_rule("weight"),
    channels_rule("reciprocal deviation", Presence::required),
    rows_rule("x", Presence::required),
};
constexpr ValueRule kGradientsResults[] = {
    channels_rule("weight gradient", Presence::required), channels_rule("bias gradient", Presence::required),
    channels_rule("dy scale", Presence::required),        channels_rule("x scale", Presence::required),
    channels_rule("shift", Presence::required),
};
constexpr ValueRule kAffineOperands[] = {
    rows_rule("x"),
    channels_rule("scale", Presence::required),
    channels_rule("shift", Presence::required),
    rows_rule("z"),
    channels_rule("z scale"),
    channels_rule("z center"),
    rows_rule("mask"),
    channels_rule("mask scale"),
    channels_rule("mask shift"),
    rows_rule("pooled"),
    kPlaces,
};
constexpr ValueRule kAffineResults[] = {rows_rule("y", Presence::required)};

constexpr AttributeRule kStatisticsAttributes[] = {any_number_rule("momentum"), any_number_rule("epsilon")};
// The window of a pooling, of two dimensions.
constexpr int64_t kMostWindow = (1 << 20) - 1;
constexpr AttributeRule kKernel = integers_rule("kernel", 1, kMostWindow),
                        kStride = integers_rule("stride", 1, kMostWindow),
                        kPadding = integers_rule("padding", 0, kMostWindow),
                        kDilation = integers_rule("dilation", 1, kMostWindow);
constexpr AttributeRule kSumsAttributes[] = {kKernel, kStride, kPadding, kDilation};
constexpr AttributeRule kAffineAttributes[] = {kKernel, kStride, kPadding, kDilation, flag_rule("relu")};

constexpr StepSchema kBatchNormSchemas[] = {
    {"batch_norm_gradients", kGradientsOperands, kGradientsResults, {}},
    {"batch_norm_statistics", kStatisticsOperands, kStatisticsResults, kStatisticsAttributes},
    {"channel_affine", kAffineOperands, kAffineResults, kAffineAttributes},
    {"channel_sums", kSumsOperands, kSumsResults, kSumsAttributes},
    {"channel_totals", kTotalsOperands, kTotalsResults, {}},
};

struct Rows {
  int64_t rows, channels;
};

Rows read_rows(const StepBinder& binder, const PlacedValue& x) {
  binder.require(x.sizes.size() >= 2 && x.sizes[1] > 0 && x.elements() > 0, "x has no rows or no channels");
  return {x.elements() / x.sizes[1], x.sizes[1]};
}

void require_rows_like(const StepBinder& binder, const PlacedValue& value, const PlacedValue& x) {
  binder.require_sizes(value, x.sizes);
  binder.require_dtype(value, x.dtype);
}

// A vector of the channels, if it is there.
template <typename Call>
void point_channels(StepBinder& binder, size_t operand, int64_t channels, const float* Call::* member) {
  if (!binder.has_operand(operand)) return;
  binder.require_sizes(binder.operand(operand), {channels});
  binder.point(member, binder.operand(operand));
}

// From this operand on; a mask without them is asked as it is.
template <typename Call>
void point_mask_map(StepBinder& binder, size_t operand, int64_t channels) {
  binder.require(binder.has_operand(operand) == binder.has_operand(operand + 1), "a mask has a scale and a shift");
  point_channels(binder, operand, channels, &Call::mask_scale);
  point_channels(binder, operand + 1, channels, &Call::mask_shift);
}

// The window of the pooling that made something like `dy` of something like `x`.
Window read_pooled(StepBinder& binder, const PlacedValue& dy, const PlacedValue& x, const PlacedValue& places) {
  Window window;
  const WindowSizes sizes = read_window(binder, x, dy, window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels differ");
  binder.require(window.kernel_height * window.kernel_width <= 255, "the window has more than 255 taps");
  binder.require_dtype(dy, x.dtype);
  binder.require_sizes(places, dy.sizes);
  return window;
}

template <typename Call>
void point_result(StepBinder& binder, size_t result, int64_t channels, float* Call::* member) {
  binder.require_sizes(binder.result(result), {channels});
  binder.point(member, binder.result(result));
}

template <typename Call>
void point_sums(StepBinder& binder, int64_t channels) {
  binder.require_sizes(binder.operand(0), {kChannelBlocks, 2, channels});
  binder.point(static_cast<const double * Call::*>(&Call::sums), binder.operand(0));
}

template <typename T>
void bind_sums(StepBinder& binder, const PlacedValue& first, std::string_view kernel) {
  using Call = ChannelSumsCallOf<T>;
  const bool forward = !binder.has_operand(1), pooled = binder.has_operand(6);
  Call call;
  const Rows rows = read_rows(binder, first);
  call.rows = rows.rows, call.channels = rows.channels;
  binder.require(!pooled || (!forward && binder.has_operand(0)), "places need x and dy");
  if (pooled) call.window = read_pooled(binder, binder.operand(1), first, binder.operand(6));
  if (!forward && !pooled) require_rows_like(binder, binder.operand(1), first);
  for (const size_t i : {0, 2}) {
    if (binder.has_operand(i)) require_rows_like(binder, binder.operand(i), first);
  }
  binder.require(forward || !binder.has_operand(0) || binder.has_operand(3), "dy and x need the mean");
  binder.require_sizes(binder.result(), {kChannelBlocks, 2, rows.channels});
  binder.set_call(kernel, call);
  if (binder.has_operand(0)) binder.point(&Call::x, binder.operand(0));
  if (!forward) binder.point(&Call::dy, binder.operand(1));
  if (binder.has_operand(2)) binder.point(&Call::mask, binder.operand(2));
  point_channels(binder, 3, rows.channels, &Call::mean);
  point_mask_map<Call>(binder, 4, rows.channels);
  if (pooled) binder.point(&Call::places, binder.operand(6));
  binder.point(&Call::sums, binder.result());
  binder.set_work(0, 2.0 * sizeof(T) * static_cast<double>(first.elements()));
}

}  // namespace

std::span<const StepSchema> batch_norm_schemas() { return kBatchNormSchemas; }

void bind_channel_sums(StepBinder& binder) {
  const PlacedValue& first = binder.operand(binder.has_operand(0) ? 0 : 1);
  if (first.dtype == Dtype::bf16) return bind_sums<uint16_t>(binder, first, "channel_sums_bf16");
  bind_sums<float>(binder, first, "channel_sums");
}

void bind_channel_totals(StepBinder& binder) {
  binder.require(binder.result().sizes.size() == 1, "the result is no vector");
  ChannelTotalsCall call;
  call.channels = binder.result().sizes[0];
  binder.set_call("channel_totals", call);
  point_sums<ChannelTotalsCall>(binder, call.channels);
  point_result(binder, 0, call.channels, &ChannelTotalsCall::total);
  binder.set_work(0, static_cast<double>(kChannelBlocks * call.channels * 8));
}

namespace {

template <typename T>
void bind_statistics(StepBinder& binder, std::string_view kernel) {
  using Call = BatchNormStatisticsCallOf<T>;
  Call call;
  const Rows rows = read_rows(binder, binder.operand(1));
  call.rows = rows.rows, call.channels = rows.channels;
  call.momentum = binder.attributes().number("momentum", 0.1);
  call.epsilon = binder.attributes().number("epsilon", 1e-5);
  binder.set_call(kernel, call);
  point_sums<Call>(binder, rows.channels);
  binder.point(&Call::x, binder.operand(1));
  point_channels(binder, 2, rows.channels, &Call::weight);
  point_channels(binder, 3, rows.channels, &Call::bias);
  point_channels(binder, 4, rows.channels, &Call::running_mean);
  point_channels(binder, 5, rows.channels, &Call::running_var);
  float* Call::* const results[] = {
      &Call::mean, &Call::reciprocal_deviation, &Call::new_mean, &Call::new_var, &Call::scale, &Call::shift};
  for (size_t i = 0; i < 6; ++i) point_result(binder, i, rows.channels, results[i]);
  binder.set_work(0, static_cast<double>(2 * kChannelBlocks * rows.channels * 8));
}

}  // namespace

void bind_batch_norm_statistics(StepBinder& binder) {
  if (binder.operand(1).dtype == Dtype::bf16) return bind_statistics<uint16_t>(binder, "batch_norm_statistics_bf16");
  bind_statistics<float>(binder, "batch_norm_statistics");
}

void bind_batch_norm_gradients(StepBinder& binder) {
  using Call = BatchNormGradientsCall;
  Call call;
  const Rows rows = read_rows(binder, binder.operand(3));
  call.rows = rows.rows, call.channels = rows.channels;
  binder.set_call("batch_norm_gradients", call);
  point_sums<Call>(binder, rows.channels);
  point_channels(binder, 1, rows.channels, &Call::weight);
  point_channels(binder, 2, rows.channels, &Call::reciprocal_deviation);
  float* Call::* const results[] = {&Call::weight_gradient, &Call::bias_gradient, &Call::dy_scale, &Call::x_scale,
                                    &Call::shift};
  for (size_t i = 0; i < 5; ++i) point_result(binder, i, rows.channels, results[i]);
  binder.set_work(0, static_cast<double>(2 * kChannelBlocks * rows.channels * 8));
}

namespace {

template <typename T>
void bind_affine(StepBinder& binder, std::string_view kernel) {
  using Call = ChannelAffineCallOf<T>;
  const bool pooled = !binder.has_operand(0);
  binder.require(pooled == binder.has_operand(9) && pooled == binder.has_operand(10),
                 "it takes either x, or what was pooled and places");
  const PlacedValue& x = binder.operand(pooled ? 9 : 0);
  const PlacedValue& y = binder.result();
  Call call;
  const Rows rows = read_rows(binder, y);
  call.rows = rows.rows, call.channels = rows.channels;
  call.relu = binder.attributes().integer("relu", 0) != 0;
  if (pooled) call.window = read_pooled(binder, x, y, binder.operand(10));
  if (!pooled) require_rows_like(binder, x, y);
  for (const size_t i : {3, 6}) {
    if (binder.has_operand(i)) require_rows_like(binder, binder.operand(i), y);
  }
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  point_channels(binder, 1, rows.channels, &Call::scale);
  point_channels(binder, 2, rows.channels, &Call::shift);
  if (binder.has_operand(3)) binder.point(&Call::z, binder.operand(3));
  point_channels(binder, 4, rows.channels, &Call::z_scale);
  point_channels(binder, 5, rows.channels, &Call::z_center);
  if (binder.has_operand(6)) binder.point(&Call::mask, binder.operand(6));
  point_mask_map<Call>(binder, 7, rows.channels);
  if (pooled) binder.point(&Call::places, binder.operand(10));
  binder.point(&Call::y, y);
  binder.set_work(0, 3.0 * sizeof(T) * static_cast<double>(y.elements()));
}

}  // namespace

void bind_channel_affine(StepBinder& binder) {
  if (binder.result().dtype == Dtype::bf16) return bind_affine<uint16_t>(binder, "channel_affine_bf16");
  bind_affine<float>(binder, "channel_affine");
}

}  // namespace lissome

#include "lissome/runtime/step/norm/channel_steps.h"

#include "lissome/runtime/step/norm/bind_channels.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

void require_rows_like(const StepBinder& binder, const PlacedValue& value, const PlacedValue& x) {
  binder.require_sizes(value, x.sizes);
  binder.require_dtype(value, x.dtype);
}

// A mask without scale and shift is asked as it is.
template <typename Call, typename Step>
void point_mask_map(StepBinder& binder, const Step& step, int64_t channels) {
  binder.require(bool(step.mask_scale) == bool(step.mask_shift), "a mask has a scale and a shift");
  point_channels(binder, step.mask_scale, channels, &Call::mask_scale);
  point_channels(binder, step.mask_shift, channels, &Call::mask_shift);
}

// The window of the pooling that made something like `dy` of something like `x`.
Window read_pooled(const StepBinder& binder, const WindowFields& fields, const PlacedValue& dy, const PlacedValue& x,
                   const OptionalOperand& indices) {
  Window window;
  const WindowSizes sizes = read_window(binder, fields, x, dy, window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels differ");
  binder.require(window.kernel_height * window.kernel_width <= 255, "the window has more than 255 taps");
  binder.require_dtype(dy, x.dtype);
  binder.require_sizes(binder.value(indices), dy.sizes);
  return window;
}

template <typename T>
void bind_sums_of(StepBinder& binder, const ChannelSumsStep& step, const PlacedValue& first, std::string_view kernel) {
  using Call = ChannelSumsCallOf<T>;
  Call call;
  const ChannelRows rows = read_channel_rows(binder, first);
  call.rows = rows.rows, call.channels = rows.channels;
  binder.require(!step.indices || (step.dy && step.x), "indices need x and dy");
  if (step.indices) call.window = read_pooled(binder, step.window, binder.value(step.dy), first, step.indices);
  if (step.dy && !step.indices) require_rows_like(binder, binder.value(step.dy), first);
  for (const OptionalOperand& like : {step.x, step.mask}) {
    if (like) require_rows_like(binder, binder.value(like), first);
  }
  binder.require(!step.dy || !step.x || step.mean, "dy and x need the mean");
  binder.require_sizes(binder.value(step.sums), {kChannelBlocks, 2, rows.channels});
  binder.set_call(kernel, call);
  if (step.x) binder.point(&Call::x, step.x);
  if (step.dy) binder.point(&Call::dy, step.dy);
  if (step.mask) binder.point(&Call::mask, step.mask);
  point_channels(binder, step.mean, rows.channels, &Call::mean);
  point_mask_map<Call>(binder, step, rows.channels);
  if (step.indices) binder.point(&Call::indices, step.indices);
  binder.point(&Call::sums, step.sums);
  binder.set_work(0, 2.0 * sizeof(T) * static_cast<double>(first.elements()));
}

void bind_channel_sums(StepBinder& binder, const ChannelSumsStep& step) {
  const PlacedValue& first = binder.value(step.x ? step.x : step.dy);
  if (first.dtype == Dtype::bf16) return bind_sums_of<uint16_t>(binder, step, first, "channel_sums_bf16");
  bind_sums_of<float>(binder, step, first, "channel_sums");
}

void bind_channel_totals(StepBinder& binder, const ChannelTotalsStep& step) {
  const PlacedValue& total = binder.value(step.total);
  binder.require(total.sizes.size() == 1, "the result is no vector");
  ChannelTotalsCall call;
  call.channels = total.sizes[0];
  binder.set_call("channel_totals", call);
  point_channel_sums<ChannelTotalsCall>(binder, step.sums, call.channels);
  point_channels(binder, step.total, call.channels, &ChannelTotalsCall::total);
  binder.set_work(0, static_cast<double>(kChannelBlocks * call.channels * 8));
}

template <typename T>
void bind_affine_of(StepBinder& binder, const ChannelAffineStep& step, std::string_view kernel) {
  using Call = ChannelAffineCallOf<T>;
  const bool pooled = !step.x;
  binder.require(pooled == bool(step.pooled) && pooled == bool(step.indices),
                 "it takes either x, or what was pooled and indices");
  const PlacedValue& x = binder.value(pooled ? step.pooled : step.x);
  const PlacedValue& y = binder.value(step.y);
  Call call;
  const ChannelRows rows = read_channel_rows(binder, y);
  call.rows = rows.rows, call.channels = rows.channels;
  call.relu = step.relu;
  if (pooled) call.window = read_pooled(binder, step.window, x, y, step.indices);
  if (!pooled) require_rows_like(binder, x, y);
  for (const OptionalOperand& like : {step.z, step.mask}) {
    if (like) require_rows_like(binder, binder.value(like), y);
  }
  binder.set_call(kernel, call);
  binder.point(&Call::x, x);
  point_channels(binder, step.scale, rows.channels, &Call::scale);
  point_channels(binder, step.shift, rows.channels, &Call::shift);
  if (step.z) binder.point(&Call::z, step.z);
  point_channels(binder, step.z_scale, rows.channels, &Call::z_scale);
  point_channels(binder, step.z_center, rows.channels, &Call::z_center);
  if (step.mask) binder.point(&Call::mask, step.mask);
  point_mask_map<Call>(binder, step, rows.channels);
  if (pooled) binder.point(&Call::indices, step.indices);
  binder.point(&Call::y, y);
  binder.set_work(0, 3.0 * sizeof(T) * static_cast<double>(y.elements()));
}

void bind_channel_affine(StepBinder& binder, const ChannelAffineStep& step) {
  if (binder.value(step.y).dtype == Dtype::bf16) return bind_affine_of<uint16_t>(binder, step, "channel_affine_bf16");
  bind_affine_of<float>(binder, step, "channel_affine");
}

}  // namespace

std::vector<StepRow> list_channel_steps() {
  return {declare_step<ChannelSumsStep, bind_channel_sums>(), declare_step<ChannelTotalsStep, bind_channel_totals>(),
          declare_step<ChannelAffineStep, bind_channel_affine>()};
}

}  // namespace lissome

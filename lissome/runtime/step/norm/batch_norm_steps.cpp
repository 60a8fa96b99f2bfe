#include "lissome/runtime/step/norm/batch_norm_steps.h"

#include "lissome/runtime/step/norm/bind_channels.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

template <typename T>
void bind_statistics_of(StepBinder& binder, const BatchNormStatisticsStep& step, std::string_view kernel) {
  using Call = BatchNormStatisticsCallOf<T>;
  Call call;
  const auto [rows, channels] = read_channel_rows(binder, binder.value(step.x));
  call.rows = rows, call.channels = channels;
  call.momentum = step.momentum;
  call.epsilon = step.epsilon;
  binder.set_call(kernel, call);
  point_channel_sums<Call>(binder, step.sums, channels);
  binder.point(&Call::x, step.x);
  point_channels(binder, step.weight, channels, &Call::weight);
  point_channels(binder, step.bias, channels, &Call::bias);
  point_channels(binder, step.running_mean, channels, &Call::running_mean);
  point_channels(binder, step.running_variance, channels, &Call::running_var);
  point_channels(binder, step.mean, channels, &Call::mean);
  point_channels(binder, step.reciprocal_deviation, channels, &Call::reciprocal_deviation);
  point_channels(binder, step.new_mean, channels, &Call::new_mean);
  point_channels(binder, step.new_variance, channels, &Call::new_var);
  point_channels(binder, step.scale, channels, &Call::scale);
  point_channels(binder, step.shift, channels, &Call::shift);
  binder.set_work(0, static_cast<double>(2 * kChannelBlocks * channels * 8));
}

void bind_batch_norm_statistics(StepBinder& binder, const BatchNormStatisticsStep& step) {
  if (binder.value(step.x).dtype == Dtype::bf16)
    return bind_statistics_of<uint16_t>(binder, step, "batch_norm_statistics_bf16");
  bind_statistics_of<float>(binder, step, "batch_norm_statistics");
}

void bind_batch_norm_gradients(StepBinder& binder, const BatchNormGradientsStep& step) {
  using Call = BatchNormGradientsCall;
  Call call;
  const auto [rows, channels] = read_channel_rows(binder, binder.value(step.x));
  call.rows = rows, call.channels = channels;
  binder.set_call("batch_norm_gradients", call);
  point_channel_sums<Call>(binder, step.sums, channels);
  point_channels(binder, step.weight, channels, &Call::weight);
  point_channels(binder, step.reciprocal_deviation, channels, &Call::reciprocal_deviation);
  point_channels(binder, step.weight_gradient, channels, &Call::weight_gradient);
  point_channels(binder, step.bias_gradient, channels, &Call::bias_gradient);
  point_channels(binder, step.dy_scale, channels, &Call::dy_scale);
  point_channels(binder, step.x_scale, channels, &Call::x_scale);
  point_channels(binder, step.shift, channels, &Call::shift);
  binder.set_work(0, static_cast<double>(2 * kChannelBlocks * channels * 8));
}

}  // namespace

std::vector<StepRow> list_batch_norm_steps() {
  return {declare_step<BatchNormStatisticsStep, bind_batch_norm_statistics>(),
          declare_step<BatchNormGradientsStep, bind_batch_norm_gradients>()};
}

}  // namespace lissome

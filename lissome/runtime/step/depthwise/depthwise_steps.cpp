#include "lissome/runtime/step/depthwise/depthwise_steps.h"

#include "lissome/runtime/step/conv/bind_conv.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

template <typename Call, typename Item>
void bind_depthwise(StepBinder& binder, const ConvValues& step, std::string_view kernel, Dtype dtype, bool transposed) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window, Format::channels_last, transposed);
  if (transposed) require_few_phases(binder, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  call.channels = sizes.in_channels;
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require_sizes(binder.value(step.weight), {taps * call.channels});
  read_conv_output(binder, step, call, y, call.channels);
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::weight, step.weight);
  point_conv_output<Call, Item>(binder, step);
  // Each pixel meets every tap: of y, or transposed of x.
  const auto products = static_cast<double>((transposed ? x : y).elements()) * static_cast<double>(taps);
  binder.set_products(products);
  binder.set_work(4.0 * products, static_cast<double>((x.elements() + y.elements()) * item_size(dtype)));
}

void bind_depthwise_f32(StepBinder& binder, const DepthwiseF32Step& step) {
  bind_depthwise<DepthwiseF32Call, float>(binder, step, "depthwise_f32", Dtype::f32, false);
}

void bind_depthwise_bf16(StepBinder& binder, const DepthwiseBf16Step& step) {
  bind_depthwise<DepthwiseBf16Call, uint16_t>(binder, step, "depthwise_bf16", Dtype::bf16, false);
}

void bind_depthwise_transposed_f32(StepBinder& binder, const DepthwiseTransposedF32Step& step) {
  bind_depthwise<DepthwiseF32Call, float>(binder, step, "depthwise_transposed_f32", Dtype::f32, true);
}

void bind_depthwise_transposed_bf16(StepBinder& binder, const DepthwiseTransposedBf16Step& step) {
  bind_depthwise<DepthwiseBf16Call, uint16_t>(binder, step, "depthwise_transposed_bf16", Dtype::bf16, true);
}

void bind_separable_f32(StepBinder& binder, const SeparableF32Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  SeparableF32Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window);
  const Window& w = call.window;
  call.channels = sizes.in_channels, call.outputs = sizes.out_channels;
  const int64_t packed = packed_linear_f32_size(call.outputs, call.channels);
  const int64_t taps = w.kernel_height * w.kernel_width;
  binder.require_sizes(binder.value(step.weight), {packed});
  binder.require_sizes(binder.value(step.first_weight), {taps * call.channels});
  if (step.first_bias) binder.require_sizes(binder.value(step.first_bias), {call.channels});
  read_conv_output(binder, step, call, y, call.outputs);
  call.first_epilogue = step.first_activation.epilogue();
  const auto product = static_cast<double>(y.elements()) * static_cast<double>(call.channels);
  const auto first = product / static_cast<double>(call.outputs) * static_cast<double>(taps);
  binder.set_products(first + product);
  binder.set_work(4 * first + product, 4.0 * static_cast<double>(x.elements() + y.elements() + packed));
  binder.set_call("separable_f32", call);
  binder.point_scratch(&SeparableF32Call::scratch, {binder.parts(), separable_f32_scratch(call), 4});
  binder.point(&SeparableF32Call::x, step.x);
  binder.point(&SeparableF32Call::weight, step.weight);
  binder.point(&SeparableF32Call::first_weight, step.first_weight);
  if (step.first_bias) binder.point(&SeparableF32Call::first_bias, step.first_bias);
  point_conv_output<SeparableF32Call>(binder, step);
}

}  // namespace

std::vector<StepRow> list_depthwise_steps() {
  return {declare_step<DepthwiseF32Step, bind_depthwise_f32>(), declare_step<DepthwiseBf16Step, bind_depthwise_bf16>(),
          declare_step<DepthwiseTransposedF32Step, bind_depthwise_transposed_f32>(),
          declare_step<DepthwiseTransposedBf16Step, bind_depthwise_transposed_bf16>(),
          declare_step<SeparableF32Step, bind_separable_f32>()};
}

}  // namespace lissome

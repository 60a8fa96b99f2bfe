#include "lissome/runtime/step/conv/conv_gradient_steps.h"

#include "lissome/runtime/step/conv/conv_window.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void set_gradient_work(StepBinder& binder, const WindowSizes& sizes, const Window& window, double numbers,
                       Dtype dtype) {
  const double products =
      static_cast<double>(window.batch * window.out_height * window.out_width) *
      static_cast<double>(sizes.out_channels) *
      static_cast<double>(sizes.in_channels / sizes.groups * window.kernel_height * window.kernel_width);
  binder.set_products(products, dtype);
  binder.set_work(products, 4.0 * numbers);
}

void bind_conv_data_f32(StepBinder& binder, const ConvDataF32Step& step) {
  const PlacedValue& dy = binder.value(step.dy);
  const PlacedValue& dx = binder.value(step.dx);
  ConvDataF32Call call;
  const WindowSizes sizes = read_window(binder, step.window, dx, dy, call.window);
  require_gradient_window(binder, call.window);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  call.epilogue = step.activation.epilogue();
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  const int64_t packed = packed_conv_data_f32_size(call.out_channels, call.in_channels, call.groups, taps);
  binder.require_sizes(binder.value(step.weight), {packed});
  if (step.bias) binder.require_sizes(binder.value(step.bias), {call.in_channels});
  binder.require_sizes(binder.value(step.zeros), {call.out_channels});
  set_gradient_work(binder, sizes, call.window, static_cast<double>(dx.elements() + dy.elements() + packed),
                    Dtype::f32);
  binder.set_call("conv_data_f32", call);
  binder.point(&ConvDataF32Call::dy, step.dy);
  binder.point(&ConvDataF32Call::weight, step.weight);
  if (step.bias) binder.point(&ConvDataF32Call::bias, step.bias);
  binder.point(&ConvDataF32Call::zeros, step.zeros);
  binder.point(&ConvDataF32Call::dx, step.dx);
}

template <typename T>
void bind_conv_weight(StepBinder& binder, const ConvWeightValues& step, std::string_view kernel, Dtype dtype) {
  using Call = ConvWeightCallOf<T>;
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& dy = binder.value(step.dy);
  const PlacedValue& dw = binder.value(step.dw);
  Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, dy, call.window);
  require_gradient_window(binder, call.window);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  Sizes wanted = list_weight_sizes(sizes.out_channels, sizes.in_channels / sizes.groups, call.window, x.sizes.size());
  if (step.splits > 0) wanted.insert(wanted.begin(), step.splits);
  call.splits = std::max<int64_t>(step.splits, 1);
  binder.require_sizes(dw, wanted);
  set_gradient_work(binder, sizes, call.window, static_cast<double>(x.elements() + dy.elements() + dw.elements()),
                    dtype);
  binder.set_call(kernel, call);
  binder.point_scratch(&Call::scratch, {binder.parts(), conv_weight_scratch(call), 4});
  binder.point(&Call::x, step.x);
  binder.point(&Call::dy, step.dy);
  binder.point(&Call::dw, step.dw);
}

void bind_conv_weight_f32(StepBinder& binder, const ConvWeightF32Step& step) {
  bind_conv_weight<float>(binder, step, "conv_weight_f32", Dtype::f32);
}

void bind_conv_weight_bf16(StepBinder& binder, const ConvWeightBf16Step& step) {
  bind_conv_weight<uint16_t>(binder, step, "conv_weight_bf16", Dtype::bf16);
}

}  // namespace

std::vector<StepRow> list_conv_gradient_steps() {
  return {declare_step<ConvDataF32Step, bind_conv_data_f32>(), declare_step<ConvWeightF32Step, bind_conv_weight_f32>(),
          declare_step<ConvWeightBf16Step, bind_conv_weight_bf16>()};
}

}  // namespace lissome

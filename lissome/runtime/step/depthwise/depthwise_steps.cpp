#include "lissome/runtime/step/depthwise/depthwise_steps.h"

#include "lissome/runtime/step/conv/bind_conv.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

enum class DepthwiseKind : uint8_t { plain, transposed, grouped };

template <typename Call, typename Item>
void bind_depthwise(StepBinder& binder, const ConvValues& step, std::string_view kernel, Dtype dtype,
                    DepthwiseKind kind) {
  const bool transposed = kind == DepthwiseKind::transposed;
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window, Format::channels_last, transposed);
  if (transposed) require_few_phases(binder, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  call.channels = sizes.in_channels;
  if (kind == DepthwiseKind::grouped) {
    call.group = sizes.in_channels / sizes.groups;
    binder.require(takes_group(call.group, call.group), "groups of ", call.group,
                   " channels: they must be 2, 4, 8 or 16");
  }
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require_sizes(binder.value(step.weight), {taps * call.group * call.channels});
  read_conv_output(binder, step, call, y, call.channels);
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::weight, step.weight);
  point_conv_output<Call, Item>(binder, step);
  // Each pixel meets every tap: of y, or transposed of x.
  const auto products = static_cast<double>((transposed ? x : y).elements()) * static_cast<double>(taps * call.group);
  binder.set_products(products);
  // Products that fill registers of sums are no slower than others.
  binder.set_work(kind == DepthwiseKind::grouped ? products : 4.0 * products,
                  static_cast<double>((x.elements() + y.elements()) * item_size(dtype)));
}

void bind_depthwise_f32(StepBinder& binder, const DepthwiseF32Step& step) {
  bind_depthwise<DepthwiseF32Call, float>(binder, step, "depthwise_f32", Dtype::f32, DepthwiseKind::plain);
}

void bind_depthwise_bf16(StepBinder& binder, const DepthwiseBf16Step& step) {
  bind_depthwise<DepthwiseBf16Call, uint16_t>(binder, step, "depthwise_bf16", Dtype::bf16, DepthwiseKind::plain);
}

void bind_depthwise_transposed_f32(StepBinder& binder, const DepthwiseTransposedF32Step& step) {
  bind_depthwise<DepthwiseF32Call, float>(binder, step, "depthwise_transposed_f32", Dtype::f32,
                                          DepthwiseKind::transposed);
}

void bind_depthwise_transposed_bf16(StepBinder& binder, const DepthwiseTransposedBf16Step& step) {
  bind_depthwise<DepthwiseBf16Call, uint16_t>(binder, step, "depthwise_transposed_bf16", Dtype::bf16,
                                              DepthwiseKind::transposed);
}

void bind_grouped_f32(StepBinder& binder, const GroupedF32Step& step) {
  bind_depthwise<DepthwiseF32Call, float>(binder, step, "grouped_f32", Dtype::f32, DepthwiseKind::grouped);
}

void bind_grouped_bf16(StepBinder& binder, const GroupedBf16Step& step) {
  bind_depthwise<GroupedBf16Call, uint16_t>(binder, step, "grouped_bf16", Dtype::bf16, DepthwiseKind::grouped);
}

// All of a call from the depthwise convolution on; its window, channels and outputs are known. What comes before it
// takes `widening` products with so many weights.
template <typename Call>
void bind_product(StepBinder& binder, const SeparableF32Step& step, std::string_view kernel, Call& call,
                  double widening, int64_t widening_weights) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  const int64_t packed = packed_linear_f32_size(call.outputs, call.channels);
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require_sizes(binder.value(step.weight), {packed});
  binder.require_sizes(binder.value(step.first_weight), {taps * call.channels});
  if (step.first_bias) binder.require_sizes(binder.value(step.first_bias), {call.channels});
  read_conv_output(binder, step, call, y, call.outputs);
  call.first_epilogue = step.first_activation.epilogue();
  const auto product = static_cast<double>(y.elements()) * static_cast<double>(call.channels);
  const auto first = product / static_cast<double>(call.outputs) * static_cast<double>(taps);
  binder.set_products(widening + first + product);
  binder.set_work(widening + 4 * first + product,
                  4.0 * static_cast<double>(x.elements() + y.elements() + packed + widening_weights));
  binder.set_call(kernel, call);
  binder.point_scratch(&Call::scratch, {binder.parts(), separable_f32_scratch(call), 4});
  binder.point(&Call::x, step.x);
  binder.point(&Call::weight, step.weight);
  binder.point(&Call::first_weight, step.first_weight);
  if (step.first_bias) binder.point(&Call::first_bias, step.first_bias);
  point_conv_output<Call>(binder, step);
}

void bind_separable_f32(StepBinder& binder, const SeparableF32Step& step) {
  const PlacedValue& x = binder.value(step.x);
  SeparableF32Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, binder.value(step.y), call.window);
  call.channels = sizes.in_channels, call.outputs = sizes.out_channels;
  bind_product(binder, step, "separable_f32", call, 0, 0);
}

// The image between x and y: as many channels as the taps of the depthwise convolution have.
void bind_inverted_f32(StepBinder& binder, const InvertedF32Step& step) {
  const PlacedValue& x = binder.value(step.x);
  InvertedF32Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, binder.value(step.y), call.window);
  const Window& w = call.window;
  call.inputs = sizes.in_channels, call.outputs = sizes.out_channels;
  const int64_t taps = w.kernel_height * w.kernel_width, first = binder.value(step.first_weight).elements();
  binder.require(first > 0 && first % taps == 0, "the weight of the windows has ", first, " numbers for ", taps,
                 " taps");
  call.channels = first / taps;
  binder.require_product({std::max<int64_t>(w.batch, 1), w.height, w.width, call.channels, 4});
  binder.require_product({call.outputs + kLinearPanel, call.channels + kLinearPanel, 4});
  binder.require_product({call.channels + kLinearPanel, call.inputs + kLinearPanel, 4});
  const int64_t packed = packed_linear_f32_size(call.channels, call.inputs);
  binder.require_sizes(binder.value(step.widen_weight), {packed});
  if (step.widen_bias) binder.require_sizes(binder.value(step.widen_bias), {call.channels});
  call.widen_epilogue = step.widen_activation.epilogue();
  const double widening = static_cast<double>(x.elements()) * static_cast<double>(call.channels);
  bind_product(binder, step, "inverted_f32", call, widening, packed);
  binder.point_scratch(&InvertedF32Call::band, {binder.parts(), inverted_f32_band(call), 4});
  binder.point(&InvertedF32Call::widen_weight, step.widen_weight);
  if (step.widen_bias) binder.point(&InvertedF32Call::widen_bias, step.widen_bias);
}

}  // namespace

std::vector<StepRow> list_depthwise_steps() {
  return {declare_step<DepthwiseF32Step, bind_depthwise_f32>(),
          declare_step<DepthwiseBf16Step, bind_depthwise_bf16>(),
          declare_step<DepthwiseTransposedF32Step, bind_depthwise_transposed_f32>(),
          declare_step<DepthwiseTransposedBf16Step, bind_depthwise_transposed_bf16>(),
          declare_step<GroupedF32Step, bind_grouped_f32>(),
          declare_step<GroupedBf16Step, bind_grouped_bf16>(),
          declare_step<SeparableF32Step, bind_separable_f32>(),
          declare_step<InvertedF32Step, bind_inverted_f32>()};
}

}  // namespace lissome

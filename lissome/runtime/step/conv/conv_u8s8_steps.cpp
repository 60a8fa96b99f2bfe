#include "lissome/runtime/step/conv/conv_u8s8_steps.h"

#include "lissome/runtime/step/gemm/bind_u8s8.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

void bind_quantize_image(StepBinder& binder, const QuantizeImageStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  // Those of rank 6 and more have no order with channels last.
  binder.require(x.sizes.size() > 2 && x.sizes.size() < 6 && x.sizes[1] > 0, "x is no image");
  binder.require_sizes(y, x.sizes);
  QuantizeImageCall call;
  call.batch = x.sizes[0], call.channels = x.sizes[1];
  call.pixels = call.batch == 0 ? 0 : x.elements() / (call.batch * call.channels);
  call.inverse = static_cast<float>(step.inverse);
  call.zero = static_cast<int32_t>(step.zero);
  binder.set_call("quantize_image", call);
  binder.point(&QuantizeImageCall::x, step.x);
  binder.point(&QuantizeImageCall::y, step.y);
  binder.set_work(0, 5.0 * static_cast<double>(x.elements()));
}

void bind_conv_u8s8(StepBinder& binder, const ConvU8S8Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  ConvU8S8Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window);
  call.in_channels = sizes.in_channels;
  call.out_channels = call.y_stride = call.residual_stride = sizes.out_channels;
  call.groups = sizes.groups;
  const int64_t rows = call.window.batch * call.window.out_height * call.window.out_width;
  const int64_t block = packed_u8s8_size(call.out_channels / call.groups, call.in_channels / call.groups,
                                         choose_runs(call.window, call.groups));
  binder.require_sizes(binder.value(step.weight), {call.groups * block});
  read_output(binder, step, call, y, call.out_channels);
  binder.require_sizes(binder.value(step.border), {call.in_channels});
  binder.set_call("conv_u8s8", call);
  binder.point(&ConvU8S8Call::x, step.x);
  binder.point(&ConvU8S8Call::weight, step.weight);
  binder.point(&ConvU8S8Call::border, step.border);
  point_output<ConvU8S8Call>(binder, step);
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.set_products(static_cast<double>(y.elements()) * static_cast<double>(call.in_channels / call.groups * taps),
                      Dtype::u8);
  binder.set_work(static_cast<double>(rows) * static_cast<double>(block) / int8_product_speed(rows),
                  static_cast<double>(x.elements() + 4 * y.elements()));
  const int64_t scratch = conv_u8s8_scratch(call.window, call.in_channels);
  if (can_run(Isa::avx2)) binder.point_scratch(&ConvU8S8Call::scratch, {binder.parts(), scratch});
}

void bind_conv_transposed_u8s8(StepBinder& binder, const ConvTransposedU8S8Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require(x.sizes.size() == 4 && y.sizes.size() == 4, "values must have 4 dimensions");
  binder.require(x.sizes[1] > 0, "there are no channels");
  const std::vector<int64_t>& kernel = step.kernel;
  binder.require(kernel.size() == 2, quote("kernel"), " has ", kernel.size(), " numbers, must have 2");
  binder.require_product({x.sizes[2], kernel[0]});
  // The places of a block of rows are counted in 32 bits.
  constexpr int64_t kBlockRows = 32;
  binder.require_product({x.sizes[3] + kBlockRows, kernel[0], kernel[1]});
  binder.require((x.sizes[3] + kBlockRows) * kernel[0] < INT32_MAX, "lines of ", x.sizes[3], " pixels are spread over ",
                 kernel[0], " lines");
  LinearU8S8Call call;
  call.rows = x.sizes[0] * x.sizes[2] * x.sizes[3];
  call.inputs = call.x_stride = x.sizes[1];
  call.spread = {x.sizes[3], kernel[0], kernel[1], y.sizes[1]};
  binder.require(y.sizes[1] > 0 && y.sizes[1] % kU8S8Panel == 0, "outputs do not fill panels");
  binder.require_product({y.sizes[1], kernel[0], kernel[1], call.inputs + kLinearPanel, 4});
  call.outputs = y.sizes[1] * kernel[0] * kernel[1];
  call.y_stride = y.sizes[1] * kernel[1];
  binder.require_sizes(binder.value(step.weight), {packed_u8s8_size(call.outputs, call.inputs, {})});
  binder.require_sizes(y, {x.sizes[0], y.sizes[1], x.sizes[2] * kernel[0], x.sizes[3] * kernel[1]});
  read_output(binder, step, call, y, call.outputs);
  binder.set_call("linear_u8s8", call);
  binder.point(&LinearU8S8Call::x, step.x);
  binder.point(&LinearU8S8Call::weight, step.weight);
  point_output<LinearU8S8Call>(binder, step);
  const auto products =
      static_cast<double>(call.rows) * static_cast<double>(call.inputs) * static_cast<double>(call.outputs);
  binder.set_products(products, Dtype::u8);
  binder.set_work(products / int8_product_speed(call.rows), static_cast<double>(x.elements() + 4 * y.elements()));
}

}  // namespace

std::vector<StepRow> list_conv_u8s8_steps() {
  return {declare_step<ConvU8S8Step, bind_conv_u8s8>(),
          declare_step<ConvTransposedU8S8Step, bind_conv_transposed_u8s8>(),
          declare_step<QuantizeImageStep, bind_quantize_image>()};
}

}  // namespace lissome

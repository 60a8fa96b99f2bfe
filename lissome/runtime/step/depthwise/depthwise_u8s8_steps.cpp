#include "lissome/runtime/step/depthwise/depthwise_u8s8_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/gemm/bind_u8s8.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

// All of a call whose channels of y are those of x, but for its window and groups. `inputs`: channels that each of y
// reads; `speed`: products of a plain convolution in the time of one.
template <typename Call>
void bind_channels(StepBinder& binder, const ConvU8S8Values& step, std::string_view kernel, Call& call,
                   int64_t channels, int64_t packed, int64_t inputs, double speed) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  const Window& w = call.window;
  call.channels = call.y_stride = call.residual_stride = channels;
  binder.require_sizes(binder.value(step.weight), {packed});
  read_output(binder, step, call, y, channels);
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::weight, step.weight);
  point_output<Call>(binder, step);
  const auto products =
      static_cast<double>(y.elements()) * static_cast<double>(w.kernel_height * w.kernel_width * inputs);
  binder.set_products(products, Dtype::u8);
  binder.set_work(products / speed, static_cast<double>(x.elements() + 4 * y.elements()));
}

void bind_depthwise_u8s8(StepBinder& binder, const DepthwiseU8S8Step& step) {
  DepthwiseU8S8Call call;
  const WindowSizes sizes = read_window(binder, step.window, binder.value(step.x), binder.value(step.y), call.window);
  const Window& w = call.window;
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  binder.require(takes_depthwise_u8s8(w), "the window is ", w.kernel_height, "x", w.kernel_width, ", dilated by ",
                 w.dilation_width, ": too large");
  bind_channels(binder, step, "depthwise_u8s8", call, sizes.in_channels,
                packed_depthwise_u8s8_size(sizes.in_channels, w), 1, 0.25);
}

void bind_grouped_u8s8(StepBinder& binder, const GroupedU8S8Step& step) {
  GroupedU8S8Call call;
  const WindowSizes sizes = read_window(binder, step.window, binder.value(step.x), binder.value(step.y), call.window);
  const Window& w = call.window;
  call.group = sizes.in_channels / sizes.groups;
  binder.require(takes_grouped_u8s8(call.group, sizes.out_channels / sizes.groups, w), "groups of ", call.group,
                 " channels, a window of ", w.kernel_height, "x", w.kernel_width,
                 ": it takes groups of 2, 4, 8, 16 or 32 and small windows");
  bind_channels(binder, step, "grouped_u8s8", call, sizes.in_channels,
                packed_grouped_u8s8_size(sizes.in_channels, call.group, w), call.group, 2);
}

}  // namespace

std::vector<StepRow> list_depthwise_u8s8_steps() {
  return {declare_step<DepthwiseU8S8Step, bind_depthwise_u8s8>(), declare_step<GroupedU8S8Step, bind_grouped_u8s8>()};
}

}  // namespace lissome

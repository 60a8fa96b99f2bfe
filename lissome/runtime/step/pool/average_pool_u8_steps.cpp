#include "lissome/runtime/step/pool/average_pool_u8_steps.h"

#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

void bind_average_pool_u8(StepBinder& binder, const AveragePoolU8Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  AveragePoolU8Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require(taps <= kAveragedBytes, "a window has ", taps, " elements, may have ", kAveragedBytes);
  step.divisor.fill(call);
  call.channels = sizes.in_channels;
  call.x_scale = static_cast<float>(step.x_scale);
  call.x_zero = static_cast<int32_t>(step.x_zero);
  call.out_inverse = static_cast<float>(step.out_inverse);
  call.out_zero = static_cast<int32_t>(step.out_zero);
  binder.set_call("average_pool_u8", call);
  binder.point(&AveragePoolU8Call::x, step.x);
  binder.point(&AveragePoolU8Call::y, step.y);
  binder.set_work(2 * static_cast<double>(taps) * static_cast<double>(y.elements()),
                  static_cast<double>(x.elements() + y.elements()));
}

}  // namespace

std::vector<StepRow> list_average_pool_u8_steps() { return {declare_step<AveragePoolU8Step, bind_average_pool_u8>()}; }

}  // namespace lissome

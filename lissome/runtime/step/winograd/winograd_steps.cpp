#include "lissome/runtime/step/winograd/winograd_steps.h"

#include "lissome/runtime/step/conv/bind_conv.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

template <typename Call, typename Item>
void bind_winograd(StepBinder& binder, const WinogradF32Step& step, std::string_view kernel, Dtype dtype) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require_dtype(y, dtype);
  Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window);
  require_winograd_window(binder, call.window, sizes.groups);
  call.tile = step.tile;
  binder.require(call.tile == 2 || call.tile == 4, quote("tile"), " is ", call.tile, ", must be 2 or 4");
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels;
  binder.require_product({call.out_channels + kLinearPanel, call.in_channels, 36, 4});
  const int64_t packed = packed_winograd_f32_size(call.out_channels, call.in_channels, call.tile);
  binder.require_sizes(binder.value(step.weight), {packed});
  binder.require_dtype(binder.value(step.zeros), dtype);
  binder.require_sizes(binder.value(step.zeros), {call.in_channels});
  read_conv_output(binder, step, call, y, call.out_channels);
  const auto products = static_cast<double>(y.elements()) * static_cast<double>(call.in_channels * 9);
  binder.set_products(products, dtype);
  binder.set_work(products / 2, static_cast<double>((x.elements() + y.elements()) * item_size(dtype) +
                                                    packed * item_size(Dtype::f32)));
  choose_winograd_blocks(call, binder.parts());
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::weight, step.weight);
  binder.point(&Call::zeros, step.zeros);
  binder.point_scratch(&Call::scratch, {binder.parts(), winograd_scratch_size(call), sizeof(float)});
  point_conv_output<Call, Item>(binder, step);
}

void bind_winograd_f32(StepBinder& binder, const WinogradF32Step& step) {
  if (binder.value(step.x).dtype == Dtype::bf16) {
    bind_winograd<WinogradBf16Call, uint16_t>(binder, step, "winograd_bf16", Dtype::bf16);
  } else {
    bind_winograd<WinogradF32Call, float>(binder, step, "winograd_f32", Dtype::f32);
  }
}

}  // namespace

std::vector<StepRow> list_winograd_steps() { return {declare_step<WinogradF32Step, bind_winograd_f32>()}; }

}  // namespace lissome

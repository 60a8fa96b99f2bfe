#include "lissome/runtime/step/winograd/winograd_u8s8_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/gemm/bind_u8s8.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"
#include "lissome/runtime/step/step_window.h"

namespace lissome {
namespace {

void bind_winograd_u8s8(StepBinder& binder, const WinogradU8S8Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  WinogradU8S8Call call;
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window);
  require_winograd_window(binder, call.window, sizes.groups);
  binder.require(sizes.in_channels % kWinogradBytes == 0 && sizes.out_channels % kWinogradBytes == 0,
                 "it takes multiples of ", kWinogradBytes, " channels");
  call.tile = kWinogradByteTile, call.in_channels = sizes.in_channels;
  call.out_channels = call.y_stride = call.residual_stride = sizes.out_channels;
  const int64_t packed = packed_winograd_u8s8_size(call.out_channels, call.in_channels);
  binder.require_sizes(binder.value(step.weight), {packed});
  read_output(binder, step, call, y, call.out_channels);
  binder.require_sizes(binder.value(step.border), {call.in_channels});
  const auto products = static_cast<double>(y.elements()) * static_cast<double>(call.in_channels * 9);
  binder.set_products(products, Dtype::u8);
  binder.set_work(products / 4, static_cast<double>(x.elements() + 4 * y.elements() + 2 * packed));
  choose_winograd_u8s8_blocks(call, binder.parts());
  binder.set_call("winograd_u8s8", call);
  binder.point(&WinogradU8S8Call::x, step.x);
  binder.point(&WinogradU8S8Call::weight, step.weight);
  binder.point(&WinogradU8S8Call::zeros, step.border);
  binder.point_scratch(&WinogradU8S8Call::scratch, {binder.parts(), winograd_u8s8_scratch(call)});
  point_output<WinogradU8S8Call>(binder, step);
}

}  // namespace

std::vector<StepRow> list_winograd_u8s8_steps() { return {declare_step<WinogradU8S8Step, bind_winograd_u8s8>()}; }

}  // namespace lissome

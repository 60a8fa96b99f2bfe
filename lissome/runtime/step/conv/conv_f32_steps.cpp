#include "lissome/runtime/step/conv/conv_f32_steps.h"

#include "lissome/runtime/step/conv/bind_conv.h"
#include "lissome/runtime/step/conv/conv_window.h"
#include "lissome/runtime/step/gemm/split_bf16x3.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_conv_f32(StepBinder& binder, const ConvF32Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  ConvF32Call call;
  const WindowSizes sizes =
      read_window(binder, step.window, x, y, call.window, step.planes ? Format::row_major : Format::channels_last);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  binder.require(!step.planes || call.groups == 1, "planes are not cut into groups");
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  const int64_t packed = packed_conv_f32_size(call.out_channels, call.in_channels, call.groups, taps);
  binder.require_sizes(binder.value(step.weight), {packed});
  binder.require_sizes(binder.value(step.zeros), {call.in_channels});
  read_conv_output(binder, step, call, y, call.out_channels);
  const double products =
      static_cast<double>(y.elements()) * static_cast<double>(call.in_channels / call.groups * taps);
  binder.set_products(products);
  binder.set_work(products, 4.0 * static_cast<double>(x.elements() + y.elements() + packed));
  binder.set_call("conv_f32", call);
  const int64_t scratch = !step.planes && may_split_bf16x3(step.finite_weight, "conv_f32") ? conv_f32_scratch(call) : 0;
  if (step.planes) binder.point_scratch(&ConvF32Call::band, {binder.parts(), conv_f32_band(call), 4});
  if (scratch > 0) binder.point_scratch(&ConvF32Call::scratch, {binder.parts(), scratch, 4});
  binder.point(&ConvF32Call::x, step.x);
  binder.point(&ConvF32Call::weight, step.weight);
  binder.point(&ConvF32Call::zeros, step.zeros);
  point_conv_output<ConvF32Call>(binder, step);
}

void bind_pack_conv_f32(StepBinder& binder, const PackConvF32Step& step) {
  const PlacedValue& weight = binder.value(step.weight);
  PackConvF32Call call;
  call.packing = step.packing == kPackData ? ConvPacking::data : ConvPacking::forward;
  call.groups = step.window.groups;
  read_packed_window(binder, step.window, weight, call.window);
  call.out_channels = weight.sizes[0], call.in_channels = weight.sizes[1] * call.groups;
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require_product({call.out_channels + call.groups * kLinearPanel, weight.sizes[1] + kLinearPanel, taps, 4});
  const int64_t size = call.packing == ConvPacking::data
                           ? packed_conv_data_f32_size(call.out_channels, call.in_channels, call.groups, taps)
                           : packed_conv_f32_size(call.out_channels, call.in_channels, call.groups, taps);
  binder.require_sizes(binder.value(step.packed), {size});
  binder.set_call("pack_conv_f32", call);
  binder.point(&PackConvF32Call::weight, step.weight);
  binder.point(&PackConvF32Call::packed, step.packed);
  binder.set_work(0, 8.0 * static_cast<double>(size));
}

}  // namespace

std::vector<StepRow> list_conv_f32_steps() {
  return {declare_step<ConvF32Step, bind_conv_f32>(), declare_step<PackConvF32Step, bind_pack_conv_f32>()};
}

}  // namespace lissome

#include "lissome/runtime/step/conv/conv_bf16_steps.h"

#include "lissome/runtime/step/conv/bind_conv.h"
#include "lissome/runtime/step/conv/conv_window.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

// Roughly how much faster products run on tile registers than those of f32.
double product_speed() { return can_run(Isa::amx) ? 8 : 1; }

// That the bytes of the packed weight can be counted.
void require_packed_size(const StepBinder& binder, int64_t in_channels, int64_t out_channels, int64_t groups,
                         const Window& window) {
  const int64_t taps = window.kernel_height * window.kernel_width;
  binder.require_product({out_channels + groups * kBf16Panel,
                          (in_channels / groups + kBf16Step) * (taps + kMostPhases * kMostPhases), 32});
}

void set_conv_work(StepBinder& binder, const ConvBf16Call& call, int64_t elements) {
  const Window& w = call.window;
  // Each pixel meets every tap: of y, or transposed of x.
  const int64_t pixels = call.transposed ? w.batch * w.height * w.width : w.batch * w.out_height * w.out_width;
  const double products = static_cast<double>(pixels) * static_cast<double>(call.out_channels) *
                          static_cast<double>(call.in_channels / call.groups * (w.kernel_height * w.kernel_width));
  binder.set_products(products, Dtype::bf16);
  binder.set_work(products / product_speed(), 2.0 * static_cast<double>(elements + packed_conv_bf16_size(call)));
}

void bind_conv_bf16(StepBinder& binder, const ConvBf16Step& step) {
  const PlacedValue &x = binder.value(step.x), &y = binder.value(step.y);
  ConvBf16Call call;
  call.planes = step.planes, call.transposed = step.transposed;
  const bool wide = call.planes && x.dtype == Dtype::f32;
  if (!wide) binder.require_dtype(x, Dtype::bf16);
  const WindowSizes sizes = read_window(binder, step.window, x, y, call.window,
                                        call.planes ? Format::row_major : Format::channels_last, call.transposed);
  call.in_channels = sizes.in_channels, call.out_channels = sizes.out_channels, call.groups = sizes.groups;
  if (call.transposed) require_few_phases(binder, call.window);
  binder.require(!call.planes || (call.groups == 1 && !call.transposed && call.in_channels < kBf16Step),
                 "planes are those of one group of less than ", kBf16Step, " channels");
  require_packed_size(binder, call.in_channels, call.out_channels, call.groups, call.window);
  binder.require_sizes(binder.value(step.weight), {packed_conv_bf16_size(call)});
  read_conv_output(binder, step, call, y, call.out_channels);
  call.scratch_part = conv_bf16_scratch(call);
  binder.set_call("conv_bf16", call);
  if (wide) {
    binder.point(&ConvBf16Call::wide_planes, step.x);
  } else {
    binder.point(&ConvBf16Call::x, step.x);
  }
  binder.point(&ConvBf16Call::weight, step.weight);
  point_conv_output<ConvBf16Call, uint16_t>(binder, step);
  set_conv_work(binder, call, x.elements() + y.elements());
  binder.point_scratch(&ConvBf16Call::scratch, {binder.parts(), call.scratch_part});
}

void bind_pack_conv_bf16(StepBinder& binder, const PackConvBf16Step& step) {
  const PlacedValue& weight = binder.value(step.weight);
  PackConvBf16Call call;
  call.groups = step.window.groups, call.transposed = step.transposed;
  read_packed_window(binder, step.window, weight, call.window);
  call.out_channels = call.transposed ? weight.sizes[1] * call.groups : weight.sizes[0];
  call.in_channels = call.transposed ? weight.sizes[0] : weight.sizes[1] * call.groups;
  require_packed_size(binder, call.in_channels, call.out_channels, call.groups, call.window);
  ConvBf16Call conv;
  conv.in_channels = call.in_channels, conv.out_channels = call.out_channels, conv.groups = call.groups;
  conv.transposed = call.transposed, conv.window = call.window;
  const int64_t size = packed_conv_bf16_size(conv);
  binder.require_sizes(binder.value(step.packed), {size});
  binder.set_call("pack_conv_bf16", call);
  if (weight.dtype == Dtype::f32) {
    binder.point(&PackConvBf16Call::wide_weight, step.weight);
  } else {
    binder.point(&PackConvBf16Call::weight, step.weight);
  }
  binder.point(&PackConvBf16Call::packed, step.packed);
  binder.set_work(8.0 * static_cast<double>(size), 4.0 * static_cast<double>(size));
}

}  // namespace

std::vector<StepRow> list_conv_bf16_steps() {
  return {declare_step<ConvBf16Step, bind_conv_bf16>(), declare_step<PackConvBf16Step, bind_pack_conv_bf16>()};
}

}  // namespace lissome

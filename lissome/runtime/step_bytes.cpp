// Steps from u8 to u8. average_pool_u8: window attributes, average, counts_padding and divisor as those of pool, and
// x_scale, x_zero, out_inverse, out_zero. table_u8: operands x and a table of 256.
#include "lissome/runtime/step_rows.h"

namespace lissome {

void bind_average_pool_u8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, Dtype::u8);
  binder.require_dtype(y, Dtype::u8);
  AveragePoolU8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  binder.require(call.window.dilation_height == 1 && call.window.dilation_width == 1, "averages are not dilated");
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require(taps <= kAveragedBytes, "a window has ", taps, " elements, may have ", kAveragedBytes);
  read_average(binder, call);
  call.channels = sizes.in_channels;
  call.x_scale = static_cast<float>(binder.attributes().number("x_scale", 0));
  call.x_zero = static_cast<int32_t>(binder.attributes().integer("x_zero", 0));
  call.out_inverse = static_cast<float>(binder.attributes().number("out_inverse", 0));
  call.out_zero = static_cast<int32_t>(binder.attributes().integer("out_zero", 0));
  for (const int32_t zero : {call.x_zero, call.out_zero}) {
    binder.require(zero >= 0 && zero <= 255, "a zero point lies outside of 0..255");
  }
  binder.set_call("average_pool_u8", call);
  binder.point(&AveragePoolU8Call::x, x);
  binder.point(&AveragePoolU8Call::y, y);
  binder.set_work(2 * static_cast<double>(taps * y.elements()), static_cast<double>(x.elements() + y.elements()));
}

void bind_table_u8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_dtype(x, Dtype::u8);
  binder.require_dtype(y, Dtype::u8);
  binder.require_sizes(y, x.sizes);
  const auto lie_in = [&](Format format) { return x.is_dense(format) && y.is_dense(format); };
  binder.require(lie_in(Format::row_major) || lie_in(Format::channels_last), "x and y lie in different orders");
  binder.require_dense(binder.operand(1), Dtype::u8, {256});
  TableU8Call call;
  call.count = x.elements();
  binder.set_call("table_u8", call);
  binder.point(&TableU8Call::x, x);
  binder.point(&TableU8Call::table, binder.operand(1));
  binder.point(&TableU8Call::y, y);
  binder.set_work(static_cast<double>(x.elements()), 2.0 * static_cast<double>(x.elements()));
}

}  // namespace lissome

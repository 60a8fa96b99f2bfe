// Steps from u8 to u8. average_pool_u8: window attributes, average, counts_padding and divisor as those of pool, and
// x_scale, x_zero, out_inverse, out_zero. lut_u8: operands x and a table of 256.
#include "lissome/runtime/step/step_rows.h"
#include "lissome/runtime/step/step_rules.h"

namespace lissome {
namespace {

constexpr ValueRule kImages[] = {{"x", {Dtype::u8}, ValueLayout::channels_last}};
constexpr ValueRule kAverages[] = {{"y", {Dtype::u8}, ValueLayout::channels_last}};
constexpr ValueRule kTableOperands[] = {{"x", {Dtype::u8}, ValueLayout::dense}, {"table", {Dtype::u8}}};
constexpr ValueRule kTableResults[] = {{"y", {Dtype::u8}, ValueLayout::dense}};
constexpr AttributeRule kScaleRules[] = {
    number_rule("x_scale", -kAnyNumber, kAnyNumber),
    integer_rule("x_zero", 0, 255),
    number_rule("out_inverse", -kAnyNumber, kAnyNumber),
    integer_rule("out_zero", 0, 255),
};
constexpr auto kAverageAttributes = join_rules(kPoolWindowRules, kAverageRules, kScaleRules);

constexpr StepSchema kByteSchemas[] = {
    {"average_pool_u8", kImages, kAverages, kAverageAttributes},
    {"lut_u8", kTableOperands, kTableResults, {}},
};

}  // namespace

std::span<const StepSchema> byte_schemas() { return kByteSchemas; }

void bind_average_pool_u8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  AveragePoolU8Call call;
  const WindowSizes sizes = read_window(binder, x, y, call.window);
  binder.require(sizes.in_channels == sizes.out_channels, "channels of x and y differ");
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  binder.require(taps <= kAveragedBytes, "a window has ", taps, " elements, may have ", kAveragedBytes);
  read_average(binder, call);
  call.channels = sizes.in_channels;
  call.x_scale = static_cast<float>(binder.attributes().number("x_scale", 0));
  call.x_zero = static_cast<int32_t>(binder.attributes().integer("x_zero", 0));
  call.out_inverse = static_cast<float>(binder.attributes().number("out_inverse", 0));
  call.out_zero = static_cast<int32_t>(binder.attributes().integer("out_zero", 0));
  binder.set_call("average_pool_u8", call);
  binder.point(&AveragePoolU8Call::x, x);
  binder.point(&AveragePoolU8Call::y, y);
  binder.set_work(2 * static_cast<double>(taps) * static_cast<double>(y.elements()),
                  static_cast<double>(x.elements() + y.elements()));
}

void bind_lut_u8(StepBinder& binder) {
  const PlacedValue& x = binder.operand(0);
  const PlacedValue& y = binder.result();
  binder.require_sizes(y, x.sizes);
  const auto lie_in = [&](Format format) { return x.is_dense(format) && y.is_dense(format); };
  binder.require(lie_in(Format::row_major) || lie_in(Format::channels_last), "x and y lie in different orders");
  binder.require_sizes(binder.operand(1), {256});
  LutU8Call call;
  call.count = x.elements();
  binder.set_call("lut_u8", call);
  binder.point(&LutU8Call::x, x);
  binder.point(&LutU8Call::table, binder.operand(1));
  binder.point(&LutU8Call::y, y);
  binder.set_work(static_cast<double>(x.elements()), 2.0 * static_cast<double>(x.elements()));
}

}  // namespace lissome

#include "lissome/runtime/step/elementwise/lut_u8_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_lut_u8(StepBinder& binder, const LutU8Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  binder.require_sizes(y, x.sizes);
  const auto lie_in = [&](Format format) { return x.is_dense(format) && y.is_dense(format); };
  binder.require(lie_in(Format::row_major) || lie_in(Format::channels_last), "x and y lie in different orders");
  binder.require_sizes(binder.value(step.table), {256});
  LutU8Call call;
  call.count = x.elements();
  binder.set_call("lut_u8", call);
  binder.point(&LutU8Call::x, step.x);
  binder.point(&LutU8Call::table, step.table);
  binder.point(&LutU8Call::y, step.y);
  binder.set_work(static_cast<double>(x.elements()), 2.0 * static_cast<double>(x.elements()));
}

}  // namespace

std::vector<StepRow> list_lut_u8_steps() { return {declare_step<LutU8Step, bind_lut_u8>()}; }

}  // namespace lissome

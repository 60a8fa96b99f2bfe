#include "lissome/runtime/step/sort/topk_steps.h"

#include "lissome/kernel/sort/topk.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_topk(StepBinder& binder, const TopkStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& values = binder.value(step.values);
  binder.require(!x.sizes.empty() && x.sizes.size() == values.sizes.size(), "x and values have no common rank");
  TopkCall call;
  call.columns = x.sizes.back(), call.count = values.sizes.back(), call.largest = step.largest;
  binder.require(call.count <= call.columns, call.count, " of ", call.columns, " elements");
  binder.require(call.columns <= INT32_MAX, "a row has ", call.columns, " elements");
  Sizes sizes = x.sizes;
  sizes.back() = call.count;
  binder.require_sizes(values, sizes);
  binder.require_sizes(binder.value(step.positions), sizes);
  call.rows = call.count > 0 ? values.elements() / call.count : 0;
  binder.set_call("topk", call);
  binder.point(&TopkCall::x, step.x);
  binder.point(&TopkCall::values, step.values);
  binder.point(&TopkCall::positions, step.positions);
  binder.set_work(2.0 * static_cast<double>(x.elements()), 4.0 * static_cast<double>(x.elements()));
  binder.point_scratch(&TopkCall::scratch, {binder.parts(), 2, call.count, int64_t{sizeof(int64_t)}});
}

}  // namespace

std::vector<StepRow> list_topk_steps() { return {declare_step<TopkStep, bind_topk>()}; }

}  // namespace lissome

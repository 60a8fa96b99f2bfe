#include "lissome/runtime/step/elementwise/dropout_steps.h"

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

template <typename Call>
void bind_call(StepBinder& binder, const DropoutStep& step, std::string_view kernel) {
  const PlacedValue& x = binder.value(step.x);
  Call call;
  call.count = x.elements();
  call.stream = static_cast<uint64_t>(step.stream);
  call.threshold = dropout_threshold(step.keep);
  call.scale = 1 / static_cast<float>(step.keep);
  binder.set_call(kernel, call);
  binder.point(&Call::x, step.x);
  binder.point(&Call::seed, step.seed);
  binder.point(&Call::y, step.y);
  binder.set_work(3 * static_cast<double>(call.count), 2.0 * static_cast<double>(item_size(x.dtype) * call.count));
}

void bind_dropout(StepBinder& binder, const DropoutStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& seed = binder.value(step.seed);
  const PlacedValue& y = binder.value(step.y);
  binder.require_dtype(y, x.dtype);
  binder.require_sizes(y, x.sizes);
  binder.require(seed.elements() == 1, "the seed is ", format_sizes(seed.sizes));
  if (x.dtype == Dtype::f32) {
    bind_call<DropoutCall>(binder, step, "dropout");
  } else {
    bind_call<DropoutBf16Call>(binder, step, "dropout_bf16");
  }
}

}  // namespace

std::vector<StepRow> list_dropout_steps() { return {declare_step<DropoutStep, bind_dropout>()}; }

}  // namespace lissome

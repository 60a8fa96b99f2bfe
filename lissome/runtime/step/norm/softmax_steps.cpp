#include "lissome/runtime/step/norm/softmax_steps.h"

#include "lissome/runtime/step/norm/softmax_width.h"
#include "lissome/runtime/step/require_elements.h"
#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_softmax(StepBinder& binder, const SoftmaxStep& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  SoftmaxCall call;
  call.width = read_softmax_width(binder, step.channels, {&x, &y});
  call.rows = call.width > 0 ? x.elements() / call.width : 0;
  call.logarithm = step.logarithm;
  call.zero_unseen = step.zero_unseen;
  binder.set_call("softmax", call);
  binder.point(&SoftmaxCall::x, x);
  binder.point(&SoftmaxCall::y, y);
  binder.set_work(0, 24.0 * static_cast<double>(x.elements()));
}

void bind_softmax_bf16(StepBinder& binder, const SoftmaxBf16Step& step) {
  const PlacedValue& x = binder.value(step.x);
  const PlacedValue& y = binder.value(step.y);
  require_elements(binder, y, x.elements());
  SoftmaxBf16Call call;
  call.width = x.sizes.empty() ? 1 : x.sizes.back();
  call.rows = call.width > 0 ? x.elements() / call.width : 0;
  binder.set_call("softmax_bf16", call);
  binder.point(&SoftmaxBf16Call::x, x);
  binder.point(&SoftmaxBf16Call::y, y);
  binder.set_work(0, 24.0 * static_cast<double>(x.elements()));
}

}  // namespace

std::vector<StepRow> list_softmax_steps() {
  return {declare_step<SoftmaxStep, bind_softmax>(), declare_step<SoftmaxBf16Step, bind_softmax_bf16>()};
}

}  // namespace lissome

#include "lissome/runtime/step/move/offload_steps.h"

#include "lissome/runtime/step/step_declaration.h"
#include "lissome/runtime/step/step_families.h"

namespace lissome {
namespace {

void bind_offload(StepBinder& binder, const OffloadStep& step) {
  binder.require_sizes(binder.value(step.ticket), {});
  binder.send_to_file(step.x, step.ticket);
}

void bind_reload(StepBinder& binder, const ReloadStep& step) { binder.fetch_from_file(step.ticket, step.x); }

}  // namespace

std::vector<StepRow> list_offload_steps() {
  return {declare_step<OffloadStep, bind_offload>(), declare_step<ReloadStep, bind_reload>()};
}

}  // namespace lissome

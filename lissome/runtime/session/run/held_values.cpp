// See held_values.h.
#include "lissome/runtime/session/run/held_values.h"

#include <algorithm>

namespace lissome {
namespace {

std::vector<bool> find_leaving_again(const Plan& plan) {
  std::vector<PlanValueId> leaving;
  for (const PlanOutput& output : plan.outputs) leaving.push_back(output.value);
  for (const PlanWrite& write : plan.writes) leaving.push_back(write.value);
  std::vector<bool> again(leaving.size());
  for (size_t i = 0; i < leaving.size(); ++i) {
    again[i] = is_value(leaving[i]) && std::find(leaving.begin() + static_cast<std::ptrdiff_t>(i) + 1, leaving.end(),
                                                 leaving[i]) != leaving.end();
  }
  return again;
}

}  // namespace

HeldValues::HeldValues(const Plan& plan, RunMemory& memory, int threads)
    : plan_(plan),
      memory_(memory),
      natively_read_(find_natively_read(plan)),
      leaves_again_(find_leaving_again(plan)),
      drops_(find_held_drops(plan)) {
  if (!plan.needs_reference()) return;
  reference_ = open_reference({&plan, memory.arrays(), threads});
  run_ = reference_->make_run();
}

void HeldValues::lend_operands(const PlanStep& step, const Binding& binding) {
  for (const PlanValueId operand : step.operands) {
    if (!is_value(operand)) continue;
    const PlanValue& value = plan_.value(operand);
    if (value.storage == Storage::held) continue;
    const TensorView view = memory_.view_of(binding, operand);
    if (value.kind == PlanKind::tensor) {
      run_->lend(operand, view);
    } else {
      run_->lend_number(operand, value.kind, view);
    }
  }
}

void HeldValues::run_step(int step, Binding& binding, const StepSink* sink) {
  const PlanStep& planned = plan_.steps[static_cast<size_t>(step)];
  lend_operands(planned, binding);
  run_->run_step(step, sink);
  for (const PlanValueId result : planned.results) {
    if (!natively_read_[static_cast<size_t>(result)]) continue;
    const PlacedValue& placed = binding.value(result);
    memory_.place(binding, result, run_->read(result, placed.dtype, placed.sizes, plan_.value(result).format));
  }
}

Array HeldValues::fetch_early(size_t output) {
  const PlanOutput& leaving = plan_.outputs[output];
  const std::vector<PlanValueId>& drops = drops_[static_cast<size_t>(leaving.leaves_after)];
  const bool last = !leaves_again_[output] && std::find(drops.begin(), drops.end(), leaving.value) != drops.end();
  return last ? run_->take(leaving.value) : run_->copy(leaving.value);
}

}  // namespace lissome

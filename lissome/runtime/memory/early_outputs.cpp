// See early_outputs.h.
#include "lissome/runtime/memory/early_outputs.h"

#include <algorithm>

namespace lissome {
namespace {

// By value: the step that makes it, -1 for none, and the last step that reads its memory, -1 for none.
struct StepUses {
  std::vector<int> made, read;
};

StepUses find_uses(const Plan& plan) {
  const size_t count = plan.values.size();
  StepUses uses{std::vector<int>(count, -1), std::vector<int>(count, -1)};
  // From the last step to the first: what is read from an alias is read from the memory that it may lie in.
  for (int i = static_cast<int>(plan.steps.size()) - 1; i >= 0; --i) {
    const PlanStep& step = plan.steps[static_cast<size_t>(i)];
    int read = i;
    for (const PlanValueId result : step.results) {
      const auto at = static_cast<size_t>(result);
      uses.made[at] = i;
      if (plan.values[at].storage == Storage::view || step.keeps_operands) read = std::max(read, uses.read[at]);
    }
    for (const PlanValueId operand : step.operands) {
      if (!is_value(operand)) continue;
      int& last = uses.read[static_cast<size_t>(operand)];
      last = std::max(last, read);
    }
  }
  return uses;
}

}  // namespace

void let_leave_early(Plan& plan, std::span<const EarlyOutput> outputs) {
  const StepUses uses = find_uses(plan);
  for (const EarlyOutput& early : outputs) {
    PlanOutput& output = plan.outputs[early.output];
    if (!is_value(output.value) || plan.steps.empty()) continue;
    output.leaves_after = std::max(uses.made[static_cast<size_t>(output.value)], 0);
    for (const size_t input : early.inputs)
      output.leaves_after = std::max(output.leaves_after, uses.read[static_cast<size_t>(plan.inputs[input].value)]);
  }
}

}  // namespace lissome

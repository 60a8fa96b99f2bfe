// See early_outputs.h.
#include "lissome/runtime/memory/early_outputs.h"

#include <algorithm>
#include <set>

namespace lissome {
namespace {

// By value: the step that makes it, -1 for none, and the last step that reads its memory when it is an input.
struct StepUses {
  std::vector<int> made, read;
};

StepUses find_uses(const Plan& plan) {
  const size_t count = plan.values.size();
  StepUses uses{std::vector<int>(count, -1), std::vector<int>(count, -1)};
  std::vector<std::set<PlanValueId>> inputs(count);  // in whose memory each value may lie
  for (const PlanInput& input : plan.inputs) inputs[static_cast<size_t>(input.value)] = {input.value};
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    std::set<PlanValueId> touched;
    for (const PlanValueId operand : step.operands) {
      if (is_value(operand))
        touched.insert(inputs[static_cast<size_t>(operand)].begin(), inputs[static_cast<size_t>(operand)].end());
    }
    for (const PlanValueId input : touched) uses.read[static_cast<size_t>(input)] = static_cast<int>(i);
    for (const PlanValueId result : step.results) {
      const auto at = static_cast<size_t>(result);
      uses.made[at] = static_cast<int>(i);
      if (plan.values[at].storage == Storage::view || step.keeps_operands) inputs[at] = touched;
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

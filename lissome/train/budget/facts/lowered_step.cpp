// See lowered_step.h.
#include "lissome/train/budget/facts/lowered_step.h"

namespace lissome {

int find_last_node(const PlanStep& step) { return step.origins.empty() ? -1 : step.origins.back().program_node; }

LoweredStep::LoweredStep(const StepSource& source)
    : program_(*source.program),
      plan_(*source.plan),
      roots_(find_plan_roots(plan_)),
      planned_(program_.values.size(), PlanValueId::none),
      nodes_(program_.nodes.size()) {
  // Files do not keep the positions: without them every node would seem to have no step.
  LISSOME_CHECK(plan_.made_here, "the plan of a step was read from a file");
  match_values();
  match_steps();
}

ValueId LoweredStep::original(PlanValueId id) const { return static_cast<ValueId>(plan_.value(id).program_value); }

const PlanStep* LoweredStep::maker(ValueId id) const {
  const PlanValueId value = planned(id);
  const int step = is_value(value) ? roots_.maker(value) : -1;
  return step < 0 ? nullptr : &plan_.steps[static_cast<size_t>(step)];
}

void LoweredStep::match_values() {
  for (size_t i = 0; i < plan_.values.size(); ++i) {
    const int value = plan_.values[i].program_value;
    if (value < 0) continue;
    LISSOME_CHECK(static_cast<size_t>(value) < planned_.size(), "value ", i, " of the plan is of another program");
    PlanValueId& planned = planned_[static_cast<size_t>(value)];
    LISSOME_CHECK(!is_value(planned), "values ", static_cast<int>(planned), " and ", i, " of the plan are one");
    planned = static_cast<PlanValueId>(i);
  }
}

void LoweredStep::match_steps() {
  std::vector<std::set<PlanValueId>> sources(plan_.values.size());  // by value: what the step that makes it reads
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const PlanStep& step = plan_.steps[i];
    const std::set<PlanValueId> read = list_reads(step, sources);
    for (const PlanValueId result : step.results) sources[static_cast<size_t>(result)] = read;
    for (const PlanOrigin& origin : step.origins) {
      if (origin.program_node < 0) continue;
      LISSOME_CHECK(static_cast<size_t>(origin.program_node) < nodes_.size(), "step ", i, " is of another program");
      NodeSteps& steps = nodes_[static_cast<size_t>(origin.program_node)];
      steps.any = true;
      steps.libtorch = steps.libtorch || step.kernel == kReferenceStep;
      steps.reads.insert(read.begin(), read.end());
    }
  }
}

std::set<PlanValueId> LoweredStep::list_reads(const PlanStep& step,
                                              const std::vector<std::set<PlanValueId>>& sources) const {
  std::set<PlanValueId> read;
  for (const PlanValueId operand : step.operands) {
    if (!is_value(operand)) continue;
    if (original(operand) != ValueId::none) {
      read.insert(root(operand));
    } else {
      const std::set<PlanValueId>& through = sources[static_cast<size_t>(operand)];
      read.insert(through.begin(), through.end());
    }
  }
  return read;
}

}  // namespace lissome

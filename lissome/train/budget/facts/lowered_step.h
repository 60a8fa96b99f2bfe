// A plan connected with the program that it was lowered from: which steps compute a node, and which value of the plan
// stands for a value of the program. Positions that lowering notes connect them (PlanOrigin::program_node,
// PlanValue::program_value). Names would not do: lowering names values of its own as it likes.
#pragma once

#include <set>
#include <vector>

#include "lissome/train/budget/facts/plan_roots.h"
#include "lissome/train/budget/facts/step_source.h"

namespace lissome {

// The steps of a plan that compute a node, alone or together with other nodes.
struct NodeSteps {
  bool any = false;
  bool libtorch = false;  // one of them runs in libtorch
  // Roots of the program's values that they read: as operands, or through values that only the plan has, such as a copy
  // in another layout.
  std::set<PlanValueId> reads;

  bool native() const { return any && !libtorch; }
};

// The node for which the time and the memory of a step count: the last of those that it fuses. -1 for none.
int find_last_node(const PlanStep& step);

class LoweredStep {
 public:
  // Borrows both parts of `source`. Throws internal where the plan was not lowered from the program.
  explicit LoweredStep(const StepSource& source);

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }

  const NodeSteps& steps(size_t node) const { return nodes_[node]; }
  // The value of the plan that stands for a value of the program; none where the plan has none, as between nodes that
  // one step computes.
  PlanValueId planned(ValueId id) const { return planned_[static_cast<size_t>(id)]; }
  // The other way; none for values that only the plan has.
  ValueId original(PlanValueId id) const;
  // The step that makes the planned value; null where no step makes one.
  const PlanStep* maker(ValueId id) const;
  PlanValueId root(PlanValueId id) const { return roots_.root(id); }

 private:
  void match_values();
  void match_steps();
  std::set<PlanValueId> list_reads(const PlanStep& step, const std::vector<std::set<PlanValueId>>& sources) const;

  const Program& program_;
  const Plan& plan_;
  const PlanRoots roots_;
  std::vector<PlanValueId> planned_;  // by value of the program
  std::vector<NodeSteps> nodes_;      // by node
};

}  // namespace lissome

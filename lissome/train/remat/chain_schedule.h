// A training step as a chain: its forward pass cut where little crosses, each stage with the backward nodes that belong
// to it. What plan_chain() makes of the chain becomes a schedule of the step.
#pragma once

#include "lissome/train/budget/step_model.h"
#include "lissome/train/remat/chain.h"

namespace lissome {

struct StepChain {
  Chain chain;
  std::vector<std::vector<int>> forward, backward;   // by stage: nodes
  std::vector<std::vector<std::vector<int>>> again;  // by stage and option: its backward nodes, recomputing among them
};

// No stages where the step has no two of them.
StepChain make_step_chain(const StepModel& model);

RunOrder make_chain_schedule(const StepModel& model, const StepChain& chain, const ChainPlan& plan);

// Several, for memory up to `limit` and beyond: each the fastest for what it takes. Those beyond are where to drop
// single values from. May be none.
std::vector<RunOrder> fit_by_chain(const StepModel& model, int64_t limit);

// Runs that no one reads before the node runs again, or at all, go.
RunOrder remove_unread_runs(const StepModel& model, const RunOrder& schedule);

}  // namespace lissome

// A training step as a chain: its forward pass cut where little crosses, each stage with the backward nodes that belong
// to it. A plan of the chain (plan_chain()) becomes a schedule of the step.
#pragma once

#include "lissome/train/budget/step_model.h"
#include "lissome/train/remat/chain.h"

namespace lissome {

struct StepChain {
  Chain chain;
  std::vector<std::vector<int>> forward, backward;  // by stage: nodes
  // By stage and option: the backward nodes, with the nodes that they recompute before them.
  std::vector<std::vector<std::vector<int>>> backward_runs;
};

// The chain has no stages where the step cannot be cut into two.
StepChain make_step_chain(const StepModel& model);

RunOrder make_chain_schedule(const StepModel& model, const StepChain& chain, const ChainPlan& plan);

// Several schedules for memory up to `limit` and beyond, each the fastest for the memory it takes. From those beyond
// the limit, a search for single values to recompute can start. The list may be empty.
std::vector<RunOrder> fit_by_chain(const StepModel& model, int64_t limit);

// Removes runs whose results nobody reads before the node runs again, or at all.
RunOrder remove_unread_runs(const StepModel& model, const RunOrder& schedule);

}  // namespace lissome

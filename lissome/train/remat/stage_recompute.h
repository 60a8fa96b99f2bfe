// Starts of a search for a tight limit: the values inside stages of the step's chain are recomputed, for several ways
// to group stages. Such a limit is too far for a greedy search that starts with nothing recomputed.
#pragma once

#include <vector>

#include "lissome/train/remat/greedy_recompute.h"

namespace lissome {

// One set for groups of one stage to four, cut at every phase. What leaves a group is kept. Empty where the step has
// fewer than two stages.
std::vector<RecomputeSet> list_stage_recompute(const StepModel& model);

// Returns the model in which nodes that nearly fill the limit by themselves may not run again: values that stay for the
// readers of their results would not fit beside them.
StepModel forbid_large_runs(StepModel model, int64_t limit);

}  // namespace lissome

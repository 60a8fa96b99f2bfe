// Where a search for a tight limit starts: what is made inside of stages of the step's chain is dropped, in several
// ways. From nothing dropped such a limit is too far for a greedy search.
#pragma once

#include <vector>

#include "lissome/train/remat/drop_values.h"

namespace lissome {

// What leaves a group of stages is kept: groups of one stage to four, each cut at every phase. None where the step has
// no two stages.
std::vector<Drops> list_stage_drops(const StepModel& model);

// The same step, but for nodes that fill nearly all of the limit by themselves: those may not run again, because what
// waits for what they make would not fit beside them.
StepModel forbid_large_runs(StepModel model, int64_t limit);

}  // namespace lissome

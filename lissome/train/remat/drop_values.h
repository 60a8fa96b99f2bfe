// A search for what to give up, so that a step fits memory.
#pragma once

#include "lissome/train/remat/drop_walk.h"

namespace lissome {

struct FittedSchedule {
  RunOrder schedule;
  ScheduleCost cost;
  bool fits = false;  // cost.peak <= limit; else nothing lower was found
};

// What fits is better than what does not, then what is faster; of two that do not fit, the smaller.
bool is_better_fit(const FittedSchedule& one, const FittedSchedule& other);

// Greedy, in several ways: at the peak, what frees most bytes above the limit for a second goes first; then every drop
// that the others made needless is taken back. Starts from `base`, which may recompute already, and from `drops` of it.
FittedSchedule fit_by_drops(const StepModel& model, const RunOrder& base, int64_t limit, const Drops& drops = {});

}  // namespace lissome

// A greedy search for the values that a step recomputes, so that the step fits into memory.
#pragma once

#include <limits>

#include "lissome/train/remat/recompute_set.h"

namespace lissome {

struct FittedSchedule {
  RunOrder schedule;
  ScheduleCost cost;
  bool fits = false;   // cost.peak <= limit; false: the search found nothing smaller
  int64_t visits = 0;  // nodes that the search judged, which says how long it took
};

// A schedule that fits is better than one that does not. Of two that fit, the faster is better; of two that do not, the
// smaller.
bool is_better_fit(const FittedSchedule& one, const FittedSchedule& other);

// Searches greedily in several ways: at the peak, the value that frees most bytes above the limit for a second of
// recomputation goes first. At the end every entry that others made needless is removed. The search starts from `base`,
// which may recompute already, and from the entries `recomputed` of it. A limit that is far out of reach ends it early,
// and after `seconds` the slower ways end.
FittedSchedule fit_by_recompute(const StepModel& model, const RunOrder& base, int64_t limit,
                                const RecomputeSet& recomputed = {},
                                double seconds = std::numeric_limits<double>::infinity());
// The quicker of these ways alone, about ten times as fast; what it finds may be larger or slower.
FittedSchedule fit_quickly(const StepModel& model, const RunOrder& base, int64_t limit);

}  // namespace lissome

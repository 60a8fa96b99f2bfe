// The quick searches for a schedule, and the best of what they find.
#pragma once

#include <cstdint>
#include <string>

#include "lissome/train/remat/greedy_recompute.h"

namespace lissome {

struct FoundSchedule {
  std::string method;  // the search that found it, as in StepForecast
  FittedSchedule fitted;
};

// The fastest schedule with a peak of at most `limit` bytes, or the smallest where none is, of greedy searches from the
// schedule `plain`, from chains of stages, and from everything inside stages recomputed. After `seconds` only the
// quickest of these ways go on.
FoundSchedule search_quickly(const StepModel& model, const RunOrder& plain, int64_t limit, double seconds);

}  // namespace lissome

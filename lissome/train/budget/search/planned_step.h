// A schedule with its plan, and what both are predicted to take: what the search compares.
#pragma once

#include <cstdint>
#include <string>

#include "lissome/train/budget/facts/step_memory.h"
#include "lissome/train/remat/spill.h"

namespace lissome {

struct PlannedStep {
  RunOrder schedule;
  Plan plan;
  StepMemory memory;
  double seconds = 0;
  std::string method;       // as in StepForecast
  Spills lossy, offloaded;  // values that the plan keeps in bf16, and in a file
};

// Whether the step fits a budget of so many bytes; 0 is no limit.
bool fits_budget(const PlannedStep& step, int64_t budget);

// A step that fits is better than one that does not. Of two that fit, the faster is better; else the smaller. `budget`
// as above.
bool is_better_step(const PlannedStep& one, const PlannedStep& other, int64_t budget);

}  // namespace lissome

// See planned_step.h.
#include "lissome/train/budget/search/planned_step.h"

namespace lissome {

bool fits_budget(const PlannedStep& step, int64_t budget) { return budget <= 0 || step.memory.total() <= budget; }

bool is_better_step(const PlannedStep& one, const PlannedStep& other, int64_t budget) {
  const bool fits = fits_budget(one, budget), fitted = fits_budget(other, budget);
  if (fits != fitted) return fits;
  return fits ? one.seconds < other.seconds : one.memory.total() < other.memory.total();
}

}  // namespace lissome

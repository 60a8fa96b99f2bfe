// A longer search behind the quick ones: simulated annealing until plans fit.
#pragma once

#include <cstdint>

#include "lissome/train/budget/search/best_step.h"

namespace lissome {

// Runs rounds of parallel annealings from the best schedule, whose plan exceeds `wanted` bytes or costs much time, and
// lets `best` take what they find. Does nothing where the quick searches did well, or ended so far above `wanted` that
// annealing would not reach it. Throws the errors of BestStep::take().
void anneal_to_fit(const PlanningTask& task, int64_t wanted, BestStep& best);

}  // namespace lissome

// Searches for the schedule that recomputes as little as a budget allows.
#pragma once

#include "lissome/train/budget/search/best_step.h"

namespace lissome {

// Keeps everything where that takes at most `share` of the budget, or where there is no limit. Else `best` takes what
// the quick searches find, then what annealing finds (anneal_to_fit) or, if values may spill, schedules that keep more
// than fits. Afterwards `best` holds a plan, which need not fit. Throws the errors of BestStep::take().
void fit_to_budget(const PlanningTask& task, double share, BestStep& best);

}  // namespace lissome

// A longer search than fit_by_drops(), for limits at which greedy ones end beside the goal or far from the best.
#pragma once

#include "lissome/train/drop_values.h"

namespace lissome {

// Simulated annealing over the drops of the plain schedule, from those of `schedule` (find_drops()). A drop comes or
// goes, goes for another, or comes while something that its value is made of stays: alone neither of the two would pay.
// Bytes above the limit weigh more and more. (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by Simulated
// Annealing", Science 220, 1983.) The same for the same options. The fastest that fits, else the smallest seen,
// `schedule` itself among them.
struct AnnealingOptions {
  int64_t visits = 0;  // bounds its work: nodes of schedules that are judged
  uint32_t seed = 0;
  double weight = 1;  // of bytes above the limit against seconds; more where the search ended above
};
FittedSchedule anneal_drops(const StepModel& model, const RunOrder& schedule, int64_t limit,
                            const AnnealingOptions& options);

// Where to start for a limit: `schedule`, and what quick searches find from chains for a little less or more, which end
// far from each other. A few, those first that cost little and exceed the limit by little.
std::vector<RunOrder> list_annealing_starts(const StepModel& model, const RunOrder& schedule, int64_t limit);

}  // namespace lissome

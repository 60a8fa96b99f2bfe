// A longer search than fit_by_drops(), for limits at which greedy ones end beside the goal or far from the best.
#pragma once

#include "lissome/train/remat/drop_values.h"

namespace lissome {

struct AnnealingOptions {
  int64_t visits = 0;  // bounds its work: nodes of schedules that are judged
  uint32_t seed = 0;
  double weight = 1;  // of bytes above the limit against seconds; more where the search ended above
};

// Simulated annealing over the drops of the plain schedule, from those of `schedule` (find_drops()). A drop comes or
// goes, goes for another, or comes while something that its value is made of stays: alone neither of the two would pay.
// Bytes above the limit weigh more and more. (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by Simulated
// Annealing", Science 220, 1983.) The same for the same options. The fastest that fits, else the smallest seen,
// `schedule` itself among them.
FittedSchedule anneal_drops(const StepModel& model, const RunOrder& schedule, int64_t limit,
                            const AnnealingOptions& options);

struct Annealed {
  size_t start;  // which it began from
  FittedSchedule found;
};

// As many at once, each on a thread of its own, with seeds that follow that of `options`: every other one from the
// first start, the others from the rest by turns.
std::vector<Annealed> anneal_at_once(const StepModel& model, const std::vector<RunOrder>& starts, int64_t limit,
                                     const AnnealingOptions& options, int count);

// Where to start for a limit: `schedule`, and what quick searches find from chains for less or a little more, which end
// far from each other. A few, those first that cost little and exceed the limit by little, as annealing weighs it.
std::vector<RunOrder> list_annealing_starts(const StepModel& model, const RunOrder& schedule, int64_t limit);

}  // namespace lissome

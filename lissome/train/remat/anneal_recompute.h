// A longer search than fit_by_recompute(), for limits at which greedy searches end above the limit or far from the best
// schedule.
#pragma once

#include <limits>

#include "lissome/train/remat/greedy_recompute.h"

namespace lissome {

struct AnnealingOptions {
  int64_t visits = 0;  // bounds the work: number of schedule nodes that are judged
  uint32_t seed = 0;
  double seconds = std::numeric_limits<double>::infinity();  // bounds the time too
  double weight = 1;  // weight of bytes above the limit against seconds; larger where a search ended above the limit
};

// Simulated annealing over the recompute set of the plain schedule, from the set of `schedule` (find_recompute_set()).
// A move adds or removes an entry, exchanges two, or adds an entry while a value that is needed for it comes to stay:
// neither change alone would pay. Bytes above the limit weigh more and more. (S. Kirkpatrick, C. D. Gelatt, M. P.
// Vecchi, "Optimization by Simulated Annealing", Science 220, 1983.) Equal options give equal results, unless `seconds`
// end it. Returns the fastest schedule that fits, else the smallest seen; `schedule` itself is among the candidates.
FittedSchedule anneal_recompute(const StepModel& model, const RunOrder& schedule, int64_t limit,
                                const AnnealingOptions& options);

struct Annealed {
  size_t start;  // index of the schedule that it began from
  FittedSchedule found;
};

// Runs `count` annealings at once, each on its own thread, with seeds that count up from that of `options`. Every other
// one begins from the first start; the rest take the other starts in turns.
std::vector<Annealed> anneal_at_once(const StepModel& model, const std::vector<RunOrder>& starts, int64_t limit,
                                     const AnnealingOptions& options, int count);

// Starts for a limit: `schedule`, and what quick searches find from chains for a little less or more memory, which end
// far from each other. Returns the few best as annealing weighs them: they cost little and exceed the limit by little.
// After `seconds` no further start is looked for.
std::vector<RunOrder> list_annealing_starts(const StepModel& model, const RunOrder& schedule, int64_t limit,
                                            double seconds = std::numeric_limits<double>::infinity());

}  // namespace lissome

// See fit_to_budget.h.
#include "lissome/train/budget/search/fit_to_budget.h"

#include <algorithm>
#include <cmath>

#include "lissome/train/budget/search/anneal_to_fit.h"
#include "lissome/train/budget/search/fitting_limit.h"
#include "lissome/train/budget/search/quick_search.h"
#include "lissome/train/remat/chain_schedule.h"

namespace lissome {
namespace {

// Tuned. Each try searches, lowers and lays out a plan, so these bound the time of planning.
// bench/compare_budget.py measures that time and the steps that come of it.
constexpr int kLimitTries = 6;
constexpr int kSpillTries = 4;
constexpr int kSureTries = 4;

// Beside annealing, for all tries together.
constexpr double kForQuickSearches = 0.5;

FoundSchedule search_within(const PlanningTask& task, double limit, int tries) {
  const double seconds = kForQuickSearches * choose_search_seconds(task) / tries;
  return search_quickly(task.facts.model, task.plain, std::max<int64_t>(static_cast<int64_t>(limit), 1), seconds);
}

// Moves the limit of the quick searches until a plan takes nearly `wanted` bytes. Returns the last limit that was
// tried. `plain_peak`: of the schedule that keeps everything.
double fit_exactly(const PlanningTask& task, int64_t wanted, double plain_peak, BestStep& best) {
  FittingLimit limit(plain_peak * static_cast<double>(wanted) / static_cast<double>(task.plain_memory.total()));
  double tried = limit.limit();
  for (int i = 0; i < kLimitTries; ++i) {
    if (task.budget.on_progress)
      task.budget.on_progress({"planning",
                               "recomputation for " + format_bytes(wanted) + " of activations and scratch, try " +
                                   std::to_string(i + 1) + " of at most " + std::to_string(kLimitTries),
                               static_cast<double>(i) / kLimitTries, -1});
    tried = limit.limit();
    const FoundSchedule found = search_within(task, tried, kLimitTries);
    const StepMemory memory = best.take(found.method, found.fitted.schedule);
    const double room = static_cast<double>(wanted) / static_cast<double>(memory.total());
    if (!limit.move(room, found.fitted.cost.peak, found.fitted.fits)) break;
  }
  return tried;
}

// Spills make room, so schedules between the one that fits, at the limit `reached`, and the plain one are tried with
// them.
void fit_with_spills(const PlanningTask& task, double reached, double plain_peak, BestStep& best) {
  for (int i = 1; i <= kSpillTries; ++i) {
    const double limit = reached * std::pow(plain_peak / reached, i / (kSpillTries + 1.0));
    const FoundSchedule found = search_within(task, limit, kSpillTries);
    best.take(found.method, found.fitted.schedule);
  }
}

// Whether recomputation could fit it. `plain_peak`: as above; a plan may take a little less than the judge counts.
bool is_within_reach(const PlanningTask& task, int64_t wanted, double plain_peak) {
  const double spared = std::max(plain_peak - static_cast<double>(task.plain_memory.total()), 0.0);
  return static_cast<double>(find_least_peak(task.facts.model)) - spared <= static_cast<double>(wanted);
}

// The least memory of plans whose search looks at bytes alone, neither at measured times nor at the budget: each run
// finds the same, so advice to give that much holds.
void fit_surely(const PlanningTask& task, double plain_peak, BestStep& best) {
  StepModel model = task.facts.model;
  for (StepNode& node : model.nodes) node.seconds = 1;
  for (int i = 0; i < kSureTries; ++i) {
    const auto limit = static_cast<int64_t>(plain_peak * i / kSureTries);
    const FittedSchedule found = fit_quickly(model, task.plain, std::max<int64_t>(limit, 1));
    best.take_surely("recompute", remove_unread_runs(model, found.schedule));
  }
}

}  // namespace

void fit_to_budget(const PlanningTask& task, double share, BestStep& best) {
  const auto wanted = static_cast<int64_t>(static_cast<double>(task.budget.memory) * share);
  if (best.take("keep all", task.plain).total() <= wanted || task.budget.memory <= 0) return;
  const bool spills = task.budget.lossy || !task.budget.offload_folder.empty();
  // A smaller share asks for recomputation though the plain step may fit the whole budget, where it would be fastest.
  if (!spills) best.forget();
  const auto plain_peak = static_cast<double>(judge_schedule(task.facts.model, task.plain, INT64_MAX).peak);
  if (spills) {
    fit_with_spills(task, fit_exactly(task, wanted, plain_peak, best), plain_peak, best);
    return;
  }
  const bool within_reach = is_within_reach(task, wanted, plain_peak);
  if (within_reach) {
    fit_exactly(task, wanted, plain_peak, best);
    anneal_to_fit(task, wanted, best);
  }
  if (!within_reach || !best.fits()) fit_surely(task, plain_peak, best);
}

}  // namespace lissome

// See quick_search.h.
#include "lissome/train/budget/search/quick_search.h"

#include "lissome/measure.h"
#include "lissome/train/remat/chain_schedule.h"
#include "lissome/train/remat/stage_recompute.h"

namespace lissome {

namespace {

// Tuned. Of one search, about 2 seconds: further ways to begin are left out of models of more than a thousand nodes.
constexpr int64_t kMostQuickVisits = 150'000'000;

}  // namespace

FoundSchedule search_quickly(const StepModel& model, const RunOrder& plain, int64_t limit, double seconds) {
  constexpr double kForOneWay = 0.25;  // of the time; there are some more
  const Stopwatch watch;
  FoundSchedule best{"recompute", fit_by_recompute(model, plain, limit, {}, kForOneWay * seconds)};
  int64_t visits = best.fitted.visits;
  const auto may_go_on = [&] { return visits < kMostQuickVisits && watch.seconds() < seconds; };
  const auto take_better = [&](FittedSchedule fitted, const char* method) {
    visits += fitted.visits;
    if (is_better_fit(fitted, best.fitted)) best = {method, std::move(fitted)};
  };
  for (const RunOrder& base : fit_by_chain(model, limit))
    if (may_go_on()) take_better(fit_by_recompute(model, base, limit, {}, kForOneWay * seconds), "chain and recompute");
  const StepModel steady = forbid_large_runs(model, limit);
  for (const RecomputeSet& recomputed : list_stage_recompute(steady))
    if (may_go_on())
      take_better(fit_by_recompute(steady, plain, limit, recomputed, kForOneWay * seconds), "stages and recompute");
  best.fitted.schedule = remove_unread_runs(model, best.fitted.schedule);
  return best;
}

}  // namespace lissome

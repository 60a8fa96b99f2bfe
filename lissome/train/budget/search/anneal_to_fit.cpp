// See anneal_to_fit.h.
#include "lissome/train/budget/search/anneal_to_fit.h"

#include <algorithm>

#include "lissome/train/remat/anneal_recompute.h"
#include "lissome/train/remat/annealing_limit.h"
#include "lissome/train/remat/chain_schedule.h"

namespace lissome {
namespace {

// Tuned. Longer annealing trades the time of planning, up to a minute for a U-Net, for the time of the step.
// bench/compare_budget.py measures both; docs/benchmarks.md holds its figures.
constexpr double kWorthAnnealing = 1.1;  // times the seconds of the step that keeps everything
constexpr double kForStarts = 0.2;       // of the time
constexpr double kFarBelow = 0.75;       // of the bytes found: annealing does not reach below that
constexpr int kMostAnnealingsAtOnce = 4;
constexpr int kAnnealingRounds = 9;          // until a plan fits
constexpr int kAnnealingRoundsWhereFit = 4;  // after a plan fits
constexpr double kMoreWeight = 1.5;          // factor for bytes above the limit, after a round that ended above it
constexpr double kMostOver = 1.05;           // times the budget: larger plans say nothing about other schedules
constexpr int64_t kMostVisits = 25'000'000;  // nodes judged in one annealing, some seconds
constexpr int64_t kVisits = 1000;            // for each pair of nodes: annealing of few nodes ends soon

bool is_worth_annealing(const PlanningTask& task, int64_t wanted, const PlannedStep& found) {
  const int64_t bytes = found.memory.total();
  if (bytes <= wanted && found.seconds < kWorthAnnealing * task.plain_seconds) return false;
  return static_cast<double>(wanted) >= kFarBelow * static_cast<double>(bytes);
}

// Returns whether the plan fits.
bool take_annealed(const PlanningTask& task, const FittedSchedule& found, int64_t wanted, AnnealingLimit& limit,
                   BestStep& best) {
  const RunOrder schedule = remove_unread_runs(task.facts.model, found.schedule);
  const int64_t planned = best.take("annealed recompute", schedule).total();
  if (static_cast<double>(planned) <= kMostOver * static_cast<double>(wanted)) limit.note(found.cost.peak, planned);
  return planned <= wanted;
}

// Learns the difference between judge and plan from two schedules that were lowered: the plain one and the best.
AnnealingLimit find_first_limit(const PlanningTask& task, int64_t wanted, const PlannedStep& found) {
  AnnealingLimit limit(wanted);
  limit.note(judge_schedule(task.facts.model, task.plain, INT64_MAX).peak, task.plain_memory.total());
  limit.note(judge_schedule(task.facts.model, found.schedule, INT64_MAX).peak, found.memory.total());
  return limit;
}

// `seconds`: since the first round began, of at most `most`.
void report_round(const PlanningTask& task, int64_t wanted, int round, double seconds, double most) {
  if (!task.budget.on_progress) return;
  const double part = static_cast<double>(round) / kAnnealingRounds;
  const double left = std::min(most - seconds, round > 0 ? seconds / part * (1 - part) : most);
  task.budget.on_progress({"planning",
                           "recomputation for " + format_bytes(wanted) + " of activations and scratch, round " +
                               std::to_string(round + 1) + " of at most " + std::to_string(kAnnealingRounds),
                           part, left});
}

}  // namespace

void anneal_to_fit(const PlanningTask& task, int64_t wanted, BestStep& best) {
  if (!is_worth_annealing(task, wanted, best.get())) return;
  const StepModel& model = task.facts.model;
  AnnealingLimit limit = find_first_limit(task, wanted, best.get());
  const Stopwatch watch;
  const double most = choose_search_seconds(task);
  report_round(task, wanted, 0, 0, most);
  std::vector<RunOrder> starts = list_annealing_starts(model, best.get().schedule, limit.most(), kForStarts * most);
  const auto nodes = static_cast<int64_t>(model.nodes.size());
  AnnealingOptions options{.visits = std::min(kMostVisits, kVisits * nodes * nodes)};
  const int at_once = std::clamp(task.source.threads, 1, kMostAnnealingsAtOnce);
  bool fitted = false;
  for (int left = kAnnealingRounds, round = 0; left > 0 && watch.seconds() < most; --left, ++round) {
    report_round(task, wanted, round, watch.seconds(), most);
    options.seconds = most - watch.seconds();
    const int64_t bytes = round % 2 == 0 ? limit.most() : limit.careful();
    std::vector<Annealed> annealed = anneal_at_once(model, starts, bytes, options, at_once);
    options.seed += static_cast<uint32_t>(at_once);
    bool reached = false;
    for (Annealed& one : annealed) {
      reached = reached || one.found.fits;
      if (one.found.fits) fitted = take_annealed(task, one.found, wanted, limit, best) || fitted;
      starts[one.start] = std::move(one.found.schedule);  // the next round begins where this one ended
    }
    // Bytes weigh more from now on: the limit may need costly recomputations.
    if (!reached) options.weight *= kMoreWeight;
    if (!fitted) continue;
    left = std::min(left, kAnnealingRoundsWhereFit);
    if (left == 2) starts = {best.get().schedule};  // the last round continues from the best schedule
  }
}

}  // namespace lissome

// See greedy_recompute.h.
#include "lissome/train/remat/greedy_recompute.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "lissome/measure.h"

namespace lissome {
namespace {

// An entry that could be added, and what it would gain.
struct Candidate {
  RecomputeEntry entry;
  double score = 0;  // bytes above the limit, summed over positions, that go away for a second of recomputation
};

// How candidates are weighed. Searches that are greedy in different ways end at different schedules, so several are
// tried.
struct Greed {
  double near_best = 0;  // candidates with this share of the best score are added together with the best, 0 to 1
  double power = 0;      // exponent of the seconds that divide the bytes: below 1, large gains come before cheap ones
};
// One entry at a time takes about ten times as long.
constexpr Greed kQuickGreeds[] = {{0.7, 1}, {0.7, 0.5}};
constexpr Greed kSlowGreeds[] = {{1, 1}, {1, 0.5}};
// Times the limit: where the quick ways end above that, the slow ones would end above the limit too.
constexpr double kFarAbove = 1.5;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

class GreedySearch {
 public:
  GreedySearch(const StepModel& model, const RunOrder& base, int64_t limit, const RecomputeSet& recomputed,
               const Greed& greed, double seconds)
      : model_(model), judge_(model, base, limit), limit_(limit), greed_(greed), seconds_(seconds) {
    accept(recomputed);
  }

  FittedSchedule run() {
    FittedSchedule best = snapshot();
    const Stopwatch watch;
    while (cost_.peak > limit_) {
      if (watch.seconds() > seconds_ || !improve()) break;
      if (cost_.peak < best.cost.peak) best = snapshot();
    }
    best.visits = visits_;
    if (cost_.peak > limit_) return best;
    take_back();
    return snapshot();
  }

 private:
  // The least time that an entry is taken to cost: that of a call that does nothing.
  static constexpr double kLeastSeconds = 1e-7;

  ScheduleCost judge(const RecomputeSet& recomputed) const {
    const RecomputeSchedule made = judge_.make(recomputed);
    visits_ += static_cast<int64_t>(made.schedule.size());
    return judge_.judge(made);
  }

  void accept(RecomputeSet recomputed) {
    recomputed_ = std::move(recomputed);
    made_ = judge_.make(recomputed_);
    cost_ = judge_.judge(made_);
  }

  FittedSchedule snapshot() const { return {made_.schedule, cost_, cost_.peak <= limit_, visits_}; }

  double score(const RecomputeEntry& entry) const {
    RecomputeSet recomputed = recomputed_;
    recomputed.insert(entry);
    const ScheduleCost cost = judge(recomputed);
    return (cost_.excess - cost.excess) / std::pow(std::max(cost.seconds - cost_.seconds, kLeastSeconds), greed_.power);
  }

  std::vector<Candidate> list_candidates() const {
    std::vector<Candidate> candidates;
    const int peak = cost_.peak_position;
    for (const IdleValue& idle : list_idle_values(model_, made_.schedule, peak)) {
      const int producer = model_.producer[static_cast<size_t>(idle.value)];
      const int after = made_.purpose[static_cast<size_t>(idle.touched)];
      if (!model_.nodes[static_cast<size_t>(producer)].repeatable) continue;
      if (model_.bytes[static_cast<size_t>(idle.value)] == 0 || recomputed_.contains({idle.value, after})) continue;
      candidates.push_back({{idle.value, after}, 0});
    }
    return candidates;
  }

  bool improve() {
    std::vector<Candidate> candidates = list_candidates();
    for (Candidate& candidate : candidates) candidate.score = score(candidate.entry);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    if (candidates.empty() || candidates.front().score <= 0) return false;
    const double least = candidates.front().score * greed_.near_best;
    for (const Candidate& candidate : candidates) {
      if (candidate.score < least || cost_.peak <= limit_) break;
      if (&candidate != &candidates.front() && score(candidate.entry) < least) continue;
      RecomputeSet recomputed = recomputed_;
      recomputed.insert(candidate.entry);
      accept(std::move(recomputed));
    }
    return true;
  }

  // Removes entries that the limit does not need, the costliest first.
  void take_back() {
    std::vector<std::pair<double, RecomputeEntry>> saved;
    for (const RecomputeEntry& entry : recomputed_) {
      RecomputeSet recomputed = recomputed_;
      recomputed.erase(entry);
      saved.emplace_back(cost_.seconds - judge(recomputed).seconds, entry);
    }
    std::stable_sort(saved.begin(), saved.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [seconds, entry] : saved) {
      RecomputeSet recomputed = recomputed_;
      recomputed.erase(entry);
      const ScheduleCost cost = judge(recomputed);
      if (cost.peak <= limit_ && cost.seconds <= cost_.seconds) accept(std::move(recomputed));
    }
  }

  const StepModel& model_;
  const RecomputeJudge judge_;
  const int64_t limit_;
  const Greed greed_;
  const double seconds_;
  RecomputeSet recomputed_;
  RecomputeSchedule made_;
  ScheduleCost cost_;
  mutable int64_t visits_ = 0;
};

FittedSchedule search_greedily(const StepModel& model, const RunOrder& base, int64_t limit,
                               const RecomputeSet& recomputed, std::span<const Greed> greeds, double seconds) {
  FittedSchedule best;
  int64_t visits = 0;
  for (const Greed& greed : greeds) {
    FittedSchedule fitted = GreedySearch(model, base, limit, recomputed, greed, seconds).run();
    visits += fitted.visits;
    if (best.schedule.empty() || is_better_fit(fitted, best)) best = std::move(fitted);
  }
  best.visits = visits;
  return best;
}

}  // namespace

bool is_better_fit(const FittedSchedule& one, const FittedSchedule& other) {
  if (one.fits != other.fits) return one.fits;
  return one.fits ? one.cost.seconds < other.cost.seconds : one.cost.peak < other.cost.peak;
}

FittedSchedule fit_by_recompute(const StepModel& model, const RunOrder& base, int64_t limit,
                                const RecomputeSet& recomputed, double seconds) {
  FittedSchedule best = search_greedily(model, base, limit, recomputed, kQuickGreeds, kUnlimited);
  if (static_cast<double>(best.cost.peak) > kFarAbove * static_cast<double>(limit)) return best;
  FittedSchedule slow = search_greedily(model, base, limit, recomputed, kSlowGreeds, seconds);
  const int64_t visits = best.visits + slow.visits;
  if (is_better_fit(slow, best)) best = std::move(slow);
  best.visits = visits;
  return best;
}

FittedSchedule fit_quickly(const StepModel& model, const RunOrder& base, int64_t limit) {
  return search_greedily(model, base, limit, {}, kQuickGreeds, kUnlimited);
}

}  // namespace lissome

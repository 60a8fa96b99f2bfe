// See drop_values.h.
#include "lissome/train/remat/drop_values.h"

#include <algorithm>
#include <cmath>

namespace lissome {
namespace {

// A drop that could be made, and what it would bring.
struct Candidate {
  std::pair<int, int> drop;
  double score = 0;  // bytes above the limit, over positions, that go for a second
};

// How candidates are weighed: a search that is greedy in one way ends elsewhere than in another, so several are tried.
struct Greed {
  double near_best = 0;  // candidates with this share of the best one's score go with it, 0 to 1
  double power = 0;      // of seconds, by which bytes are divided: below 1, large gains come before cheap ones
};
constexpr Greed kGreeds[] = {{0.7, 1}, {1, 1}, {0.7, 0.5}, {1, 0.5}};

class DropSearch {
 public:
  DropSearch(const StepModel& model, const RunOrder& base, int64_t limit, const Drops& drops, const Greed& greed)
      : model_(model), judge_(model, base, limit), limit_(limit), greed_(greed) {
    accept(drops);
  }

  FittedSchedule run() {
    FittedSchedule best = snapshot();
    while (cost_.peak > limit_) {
      if (!improve()) break;
      if (cost_.peak < best.cost.peak) best = snapshot();
    }
    if (cost_.peak > limit_) return best;
    take_back();
    return snapshot();
  }

 private:
  // Less than this is gained by no drop: the time of a call of nothing.
  static constexpr double kLeastSeconds = 1e-7;

  ScheduleCost judge(const Drops& drops) const { return judge_.judge(judge_.make(drops)); }

  void accept(Drops drops) {
    drops_ = std::move(drops);
    made_ = judge_.make(drops_);
    cost_ = judge_.judge(made_);
  }

  FittedSchedule snapshot() const { return {made_.schedule, cost_, cost_.peak <= limit_}; }

  double score(const std::pair<int, int>& drop) const {
    Drops drops = drops_;
    drops.insert(drop);
    const ScheduleCost cost = judge(drops);
    return (cost_.excess - cost.excess) / std::pow(std::max(cost.seconds - cost_.seconds, kLeastSeconds), greed_.power);
  }

  std::vector<Candidate> list_candidates() const {
    std::vector<Candidate> candidates;
    const int peak = cost_.peak_position;
    for (const IdleValue& idle : list_idle_values(model_, made_.schedule, peak)) {
      const int producer = model_.producer[static_cast<size_t>(idle.value)];
      const int after = made_.purpose[static_cast<size_t>(idle.touched)];
      if (!model_.nodes[static_cast<size_t>(producer)].repeatable) continue;
      if (model_.bytes[static_cast<size_t>(idle.value)] == 0 || drops_.contains({idle.value, after})) continue;
      candidates.push_back({{idle.value, after}, 0});
    }
    return candidates;
  }

  bool improve() {
    std::vector<Candidate> candidates = list_candidates();
    for (Candidate& candidate : candidates) candidate.score = score(candidate.drop);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    if (candidates.empty() || candidates.front().score <= 0) return false;
    const double least = candidates.front().score * greed_.near_best;
    for (const Candidate& candidate : candidates) {
      if (candidate.score < least || cost_.peak <= limit_) break;
      if (&candidate != &candidates.front() && score(candidate.drop) < least) continue;
      Drops drops = drops_;
      drops.insert(candidate.drop);
      accept(std::move(drops));
    }
    return true;
  }

  // The costliest first.
  void take_back() {
    std::vector<std::pair<double, std::pair<int, int>>> saved;
    for (const auto& drop : drops_) {
      Drops drops = drops_;
      drops.erase(drop);
      saved.emplace_back(cost_.seconds - judge(drops).seconds, drop);
    }
    std::stable_sort(saved.begin(), saved.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [seconds, drop] : saved) {
      Drops drops = drops_;
      drops.erase(drop);
      const ScheduleCost cost = judge(drops);
      if (cost.peak <= limit_ && cost.seconds <= cost_.seconds) accept(std::move(drops));
    }
  }

  const StepModel& model_;
  const DropJudge judge_;
  const int64_t limit_;
  const Greed greed_;
  Drops drops_;
  DropSchedule made_;
  ScheduleCost cost_;
};

}  // namespace

bool is_better_fit(const FittedSchedule& one, const FittedSchedule& other) {
  if (one.fits != other.fits) return one.fits;
  return one.fits ? one.cost.seconds < other.cost.seconds : one.cost.peak < other.cost.peak;
}

FittedSchedule fit_by_drops(const StepModel& model, const RunOrder& base, int64_t limit, const Drops& drops) {
  FittedSchedule best;
  for (const Greed& greed : kGreeds) {
    FittedSchedule fitted = DropSearch(model, base, limit, drops, greed).run();
    if (best.schedule.empty() || is_better_fit(fitted, best)) best = std::move(fitted);
  }
  return best;
}

}  // namespace lissome

// See drop_values.h.
#include "lissome/train/drop_values.h"

#include <algorithm>
#include <cmath>

namespace lissome {
namespace {

// When the memory of each value is made and read along a schedule: found once for many walks.
class Touches {
 public:
  Touches(const StepModel& model, const RunOrder& base) : by_value_(model.owner.size()) {
    const auto note = [&](int value, const Touch& touch) {
      const int owner = model.owner[static_cast<size_t>(value)];
      if (owner >= 0) by_value_[static_cast<size_t>(owner)].push_back(touch);
    };
    for (size_t at = 0; at < base.size(); ++at) {
      const StepNode& node = model.nodes[static_cast<size_t>(base[at])];
      for (const int value : node.reads) note(value, {static_cast<int>(at), true});
      for (const int value : node.results) {
        if (model.owner[static_cast<size_t>(value)] == value) note(value, {static_cast<int>(at), false});
      }
    }
    for (const int value : model.leaving) note(value, {static_cast<int>(base.size()), true});
  }

  // Whether it is read after this position before it is made anew.
  bool is_read_next(int owner, int position) const {
    const std::vector<Touch>& touches = by_value_[static_cast<size_t>(owner)];
    const auto next = std::upper_bound(touches.begin(), touches.end(), position,
                                       [](int at, const Touch& touch) { return at < touch.position; });
    return next != touches.end() && next->reads;
  }

 private:
  struct Touch {
    int position = 0;    // of the schedule
    bool reads = false;  // else it is made there
  };
  std::vector<std::vector<Touch>> by_value_;  // in order
};

// What is dropped, with quick answers for the many values of which nothing is.
class DropSet {
 public:
  DropSet(const StepModel& model, Drops drops) : drops_(std::move(drops)), any_(model.owner.size(), 0) {
    for (const auto& [value, position] : drops_) any_[static_cast<size_t>(value)] = 1;
  }
  bool contains(int value, int position) const {
    return any_[static_cast<size_t>(value)] != 0 && drops_.contains({value, position});
  }

 private:
  Drops drops_;
  std::vector<char> any_;
};

// One walk over a schedule, with runs put in where something is read that was dropped.
class DropWalk {
 public:
  DropWalk(const StepModel& model, const RunOrder& base, const Touches& touches, const DropSet& drops,
           std::vector<int>& held_until)
      : model_(model),
        base_(base),
        touches_(touches),
        drops_(drops),
        held_until_(held_until),
        available_(model.owner.size(), 0),
        runs_(model.owner.size(), 0) {}

  // False when something unrepeatable has to be held longer than it was: to be walked again.
  bool run(DropSchedule& made) {
    made_ = &made;
    for (size_t at = 0; at < base_.size(); ++at) {
      purpose_ = static_cast<int>(at);
      touched_.clear();
      run_node(base_[at]);
      if (blocked_) return false;
      for (const int owner : touched_) available_[static_cast<size_t>(owner)] = stays(owner) ? 1 : 0;
    }
    return true;
  }

 private:
  int& runs(int value) { return runs_[static_cast<size_t>(value)]; }

  bool stays(int owner) const {
    if (held_until_[static_cast<size_t>(owner)] > purpose_) return true;
    return !drops_.contains(owner, purpose_) && touches_.is_read_next(owner, purpose_);
  }

  void run_node(int position) {
    const StepNode& node = model_.nodes[static_cast<size_t>(position)];
    for (const int value : node.reads) {
      provide(value);
      if (blocked_) return;
    }
    made_->schedule.push_back(position);
    made_->purpose.push_back(purpose_);
    for (const int value : node.results) {
      const int owner = model_.owner[static_cast<size_t>(value)];
      if (owner < 0) continue;
      touched_.push_back(owner);
      if (owner == value) available_[static_cast<size_t>(value)] = 1;
      runs(value) = owner == value ? runs(value) + 1 : runs(owner);
    }
  }

  void provide(int value) {
    const int owner = model_.owner[static_cast<size_t>(value)];
    if (owner < 0) return;
    touched_.push_back(owner);
    if (available_[static_cast<size_t>(owner)] == 0) {
      const int maker = model_.producer[static_cast<size_t>(owner)];
      if (!model_.nodes[static_cast<size_t>(maker)].repeatable) {
        held_until_[static_cast<size_t>(owner)] = purpose_;
        blocked_ = true;
        return;
      }
      run_node(maker);
    }
    // A view of memory that was made anew is taken anew.
    if (!blocked_ && owner != value && runs(value) != runs(owner))
      run_node(model_.producer[static_cast<size_t>(value)]);
  }

  const StepModel& model_;
  const RunOrder& base_;
  const Touches& touches_;
  const DropSet& drops_;
  std::vector<int>& held_until_;  // by owning value
  std::vector<char> available_;   // by owning value
  std::vector<int> runs_;         // by value: of the node that makes the memory; of a view: when it was taken
  DropSchedule* made_ = nullptr;
  int purpose_ = 0;
  std::vector<int> touched_;  // owners, for the sake of the present node
  bool blocked_ = false;
};

DropSchedule walk(const StepModel& model, const RunOrder& base, const Touches& touches, const DropSet& drops) {
  std::vector<int> held_until(model.owner.size(), -1);
  for (;;) {
    DropSchedule made;
    made.schedule.reserve(2 * base.size());
    made.purpose.reserve(2 * base.size());
    if (DropWalk(model, base, touches, drops, held_until).run(made)) return made;
  }
}

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
      : model_(model), base_(base), touches_(model, base), limit_(limit), greed_(greed) {
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

  ScheduleCost judge(const Drops& drops) const { return judge(walk(model_, base_, touches_, DropSet(model_, drops))); }

  // Bytes above the limit count once for each node of the base: that something is made again is no fault in itself.
  ScheduleCost judge(const DropSchedule& made) const {
    std::vector<int64_t> live;
    ScheduleCost cost = judge_schedule(model_, made.schedule, limit_, &live);
    cost.excess = 0;
    for (size_t at = 0; at < live.size();) {
      const int purpose = made.purpose[at];
      int64_t most = limit_;
      for (; at < live.size() && made.purpose[at] == purpose; ++at) most = std::max(most, live[at]);
      const double over = static_cast<double>(most - limit_);
      cost.excess += over;
    }
    return cost;
  }

  void accept(Drops drops) {
    drops_ = std::move(drops);
    made_ = walk(model_, base_, touches_, DropSet(model_, drops_));
    cost_ = judge(made_);
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
  const RunOrder& base_;
  const Touches touches_;
  const int64_t limit_;
  const Greed greed_;
  Drops drops_;
  DropSchedule made_;
  ScheduleCost cost_;
};

}  // namespace

DropSchedule make_drop_schedule(const StepModel& model, const RunOrder& base, const Drops& drops) {
  return walk(model, base, Touches(model, base), DropSet(model, drops));
}

FittedSchedule fit_by_drops(const StepModel& model, const RunOrder& base, int64_t limit, const Drops& drops) {
  FittedSchedule best;
  for (const Greed& greed : kGreeds) {
    FittedSchedule fitted = DropSearch(model, base, limit, drops, greed).run();
    const bool better = best.schedule.empty()      ? true
                        : fitted.fits != best.fits ? fitted.fits
                        : fitted.fits              ? fitted.cost.seconds < best.cost.seconds
                                                   : fitted.cost.peak < best.cost.peak;
    if (better) best = std::move(fitted);
  }
  return best;
}

}  // namespace lissome

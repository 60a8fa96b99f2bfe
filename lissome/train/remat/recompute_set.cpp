// See recompute_set.h.
#include "lissome/train/remat/recompute_set.h"

#include <algorithm>

namespace lissome {
namespace {

// A recompute set with quick answers for the many values that have no entry in it.
class RecomputeLookup {
 public:
  RecomputeLookup(const StepModel& model, const RecomputeSet& recomputed)
      : recomputed_(recomputed), any_(model.owner.size(), 0) {
    for (const auto& [value, position] : recomputed_) any_[static_cast<size_t>(value)] = 1;
  }
  bool contains(int value, int position) const {
    return any_[static_cast<size_t>(value)] != 0 && recomputed_.contains({value, position});
  }

 private:
  const RecomputeSet& recomputed_;
  std::vector<char> any_;
};

// One walk over a schedule that inserts runs where a value is read that was freed.
class RecomputeWalk {
 public:
  RecomputeWalk(const StepModel& model, const RunOrder& base, const RecomputeJudge& judge,
                const RecomputeLookup& recomputed)
      : model_(model),
        base_(base),
        judge_(judge),
        recomputed_(recomputed),
        available_(model.owner.size(), 0),
        runs_(model.owner.size(), 0) {}

  RecomputeSchedule run() {
    made_.schedule.reserve(2 * base_.size());
    made_.purpose.reserve(2 * base_.size());
    for (size_t at = 0; at < base_.size(); ++at) {
      purpose_ = static_cast<int>(at);
      touched_.clear();
      run_node(base_[at]);
      for (const int owner : touched_) available_[static_cast<size_t>(owner)] = stays(owner) ? 1 : 0;
    }
    return std::move(made_);
  }

 private:
  int& runs(int value) { return runs_[static_cast<size_t>(value)]; }

  bool stays(int owner) const {
    // What cannot be made anew stays; its memory is free after the last reader of the schedule all the same.
    if (!model_.nodes[static_cast<size_t>(model_.producer[static_cast<size_t>(owner)])].repeatable) return true;
    return !recomputed_.contains(owner, purpose_) && judge_.is_read_next(owner, purpose_);
  }

  void run_node(int position) {
    const StepNode& node = model_.nodes[static_cast<size_t>(position)];
    for (const int value : node.reads) provide(value);
    made_.schedule.push_back(position);
    made_.purpose.push_back(purpose_);
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
    if (available_[static_cast<size_t>(owner)] == 0) run_node(model_.producer[static_cast<size_t>(owner)]);
    // A view of recomputed memory is taken anew.
    if (owner != value && runs(value) != runs(owner)) run_node(model_.producer[static_cast<size_t>(value)]);
  }

  const StepModel& model_;
  const RunOrder& base_;
  const RecomputeJudge& judge_;
  const RecomputeLookup& recomputed_;
  std::vector<char> available_;  // by owning value
  std::vector<int> runs_;  // by value: runs of the node that makes the memory; of a view: the runs when it was taken
  RecomputeSchedule made_;
  int purpose_ = 0;
  std::vector<int> touched_;  // owners that the present node and its recomputations touched
};

}  // namespace

RecomputeJudge::RecomputeJudge(const StepModel& model, const RunOrder& base, int64_t limit)
    : model_(model), base_(base), limit_(limit), touches_(model.owner.size()) {
  const auto note = [&](int value, const Touch& touch) {
    const int owner = model.owner[static_cast<size_t>(value)];
    if (owner >= 0) touches_[static_cast<size_t>(owner)].push_back(touch);
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

bool RecomputeJudge::is_read_next(int owner, int position) const {
  const std::vector<Touch>& touches = touches_[static_cast<size_t>(owner)];
  const auto next = std::upper_bound(touches.begin(), touches.end(), position,
                                     [](int at, const Touch& touch) { return at < touch.position; });
  return next != touches.end() && next->reads;
}

RecomputeSchedule RecomputeJudge::make(const RecomputeSet& recomputed) const {
  return RecomputeWalk(model_, base_, *this, RecomputeLookup(model_, recomputed)).run();
}

ScheduleCost RecomputeJudge::judge(const RecomputeSchedule& made) const {
  std::vector<int64_t> live;
  ScheduleCost cost = judge_schedule(model_, made.schedule, limit_, &live);
  cost.excess = 0;
  for (size_t at = 0; at < live.size();) {
    const int purpose = made.purpose[at];
    int64_t most = limit_;
    for (; at < live.size() && made.purpose[at] == purpose; ++at) most = std::max(most, live[at]);
    cost.excess += static_cast<double>(most - limit_);
  }
  return cost;
}

RecomputeSchedule make_recompute_schedule(const StepModel& model, const RunOrder& base,
                                          const RecomputeSet& recomputed) {
  return RecomputeJudge(model, base, INT64_MAX).make(recomputed);
}

RecomputeSet find_recompute_set(const StepModel& model, const RunOrder& schedule) {
  // A repeated run serves the next node that runs for the first time.
  std::vector<bool> ran(model.nodes.size(), false), runs_first(schedule.size(), false);
  for (size_t at = 0; at < schedule.size(); ++at) {
    const auto node = static_cast<size_t>(schedule[at]);
    runs_first[at] = !ran[node];
    ran[node] = true;
  }
  std::vector<int> purpose(schedule.size(), static_cast<int>(model.nodes.size()));
  for (size_t at = schedule.size(); at-- > 0;) {
    if (runs_first[at])
      purpose[at] = schedule[at];
    else if (at + 1 < schedule.size())
      purpose[at] = purpose[at + 1];
  }
  RecomputeSet recomputed;
  std::vector<int> touched(model.owner.size(), -1);  // by owner: the purpose of the last run that touched it
  for (size_t at = 0; at < schedule.size(); ++at) {
    const StepNode& node = model.nodes[static_cast<size_t>(schedule[at])];
    for (const int value : node.reads) {
      if (const int owner = model.owner[static_cast<size_t>(value)]; owner >= 0)
        touched[static_cast<size_t>(owner)] = purpose[at];
    }
    for (const int value : node.results) {
      if (model.owner[static_cast<size_t>(value)] != value) continue;
      int& last = touched[static_cast<size_t>(value)];
      if (!runs_first[at]) recomputed.insert({value, last});
      last = purpose[at];
    }
  }
  return recomputed;
}

}  // namespace lissome

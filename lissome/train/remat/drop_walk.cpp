// See drop_walk.h.
#include "lissome/train/remat/drop_walk.h"

#include <algorithm>

namespace lissome {
namespace {

// What is dropped, with quick answers for the many values of which nothing is.
class DropSet {
 public:
  DropSet(const StepModel& model, const Drops& drops) : drops_(drops), any_(model.owner.size(), 0) {
    for (const auto& [value, position] : drops_) any_[static_cast<size_t>(value)] = 1;
  }
  bool contains(int value, int position) const {
    return any_[static_cast<size_t>(value)] != 0 && drops_.contains({value, position});
  }

 private:
  const Drops& drops_;
  std::vector<char> any_;
};

// One walk over a schedule, with runs put in where something is read that was dropped.
class DropWalk {
 public:
  DropWalk(const StepModel& model, const RunOrder& base, const DropJudge& judge, const DropSet& drops,
           std::vector<int>& held_until)
      : model_(model),
        base_(base),
        judge_(judge),
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
    return !drops_.contains(owner, purpose_) && judge_.is_read_next(owner, purpose_);
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
  const DropJudge& judge_;
  const DropSet& drops_;
  std::vector<int>& held_until_;  // by owning value
  std::vector<char> available_;   // by owning value
  std::vector<int> runs_;         // by value: of the node that makes the memory; of a view: when it was taken
  DropSchedule* made_ = nullptr;
  int purpose_ = 0;
  std::vector<int> touched_;  // owners, for the sake of the present node
  bool blocked_ = false;
};

}  // namespace

DropJudge::DropJudge(const StepModel& model, const RunOrder& base, int64_t limit)
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

bool DropJudge::is_read_next(int owner, int position) const {
  const std::vector<Touch>& touches = touches_[static_cast<size_t>(owner)];
  const auto next = std::upper_bound(touches.begin(), touches.end(), position,
                                     [](int at, const Touch& touch) { return at < touch.position; });
  return next != touches.end() && next->reads;
}

DropSchedule DropJudge::make(const Drops& drops) const {
  const DropSet dropped(model_, drops);
  std::vector<int> held_until(model_.owner.size(), -1);
  for (;;) {
    DropSchedule made;
    made.schedule.reserve(2 * base_.size());
    made.purpose.reserve(2 * base_.size());
    if (DropWalk(model_, base_, *this, dropped, held_until).run(made)) return made;
  }
}

ScheduleCost DropJudge::judge(const DropSchedule& made) const {
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

DropSchedule make_drop_schedule(const StepModel& model, const RunOrder& base, const Drops& drops) {
  return DropJudge(model, base, INT64_MAX).make(drops);
}

Drops find_drops(const StepModel& model, const RunOrder& schedule) {
  // What runs again does so for the sake of the next node that runs for the first time.
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
  Drops drops;
  std::vector<int> touched(model.owner.size(), -1);  // by owner: for whose sake last
  for (size_t at = 0; at < schedule.size(); ++at) {
    const StepNode& node = model.nodes[static_cast<size_t>(schedule[at])];
    for (const int value : node.reads) {
      if (const int owner = model.owner[static_cast<size_t>(value)]; owner >= 0)
        touched[static_cast<size_t>(owner)] = purpose[at];
    }
    for (const int value : node.results) {
      if (model.owner[static_cast<size_t>(value)] != value) continue;
      int& last = touched[static_cast<size_t>(value)];
      if (!runs_first[at]) drops.insert({value, last});
      last = purpose[at];
    }
  }
  return drops;
}

}  // namespace lissome

// See spill.h.
#include "lissome/train/remat/spill.h"

#include <algorithm>
#include <map>
#include <set>

#include "lissome/footprint.h"
#include "lissome/runtime/step/move/view_steps.h"

namespace lissome {
namespace {

constexpr int kSpillRounds = 32;

// A value that no step touches between two steps.
struct IdleSpan {
  PlanValueId value = PlanValueId::none;
  int before = 0, after = 0;  // the steps that touch it around the span
  int64_t bytes = 0;
};

class SpillPlanner {
 public:
  SpillPlanner(Plan& plan, std::span<const int64_t> bytes, const SpillKind& kind)
      : plan_(plan), bytes_(bytes), kind_(kind), roots_(plan.value_ids()), touched_(plan.values.size()) {
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const PlanStep& step = plan.steps[i];
      for (const PlanValueId operand : step.operands) touch(operand, static_cast<int>(i), step.keeps_operands);
      for (const PlanValueId result : step.results) {
        if (plan.value(result).storage == Storage::view) {
          roots_[static_cast<size_t>(result)] = root(find_viewed(step));
          view_of_[result] = static_cast<int>(i);
        }
        touch(result, static_cast<int>(i), false);
      }
    }
    for (const PlanOutput& output : plan.outputs) forbid(output.value);
    for (const PlanWrite& write : plan.writes) forbid(write.value);
  }

  // Values that are idle during this step, the largest first.
  std::vector<IdleSpan> list_idle(int step) const {
    std::vector<IdleSpan> idle;
    for (const PlanValueId id : plan_.value_ids()) {
      const PlanValue& value = plan_.value(id);
      const std::set<int>& touched = touched_[static_cast<size_t>(id)];
      const int64_t bytes = bytes_[static_cast<size_t>(id)];
      if (value.storage != Storage::arena || forbidden_.contains(id) || bytes < kind_.least_bytes || touched.empty() ||
          !kind_.allows(value)) {
        continue;
      }
      const auto after = touched.upper_bound(step);
      if (after == touched.begin() || after == touched.end()) continue;
      const int before = *std::prev(after);
      if (before < step && step < *after) idle.push_back({id, before, *after, bytes});
    }
    std::stable_sort(idle.begin(), idle.end(), [](const IdleSpan& a, const IdleSpan& b) { return a.bytes > b.bytes; });
    return idle;
  }

  // The spans must be of different values.
  void spill(std::span<const IdleSpan> spans) {
    const size_t count = plan_.steps.size();
    before_.assign(count, {}), behind_.assign(count, {});
    for (const IdleSpan& span : spans) spill_one(span);
    std::vector<PlanStep> steps;
    std::vector<int> moved;
    for (size_t i = 0; i < count; ++i) {
      std::move(before_[i].begin(), before_[i].end(), std::back_inserter(steps));
      moved.push_back(static_cast<int>(steps.size()));
      steps.push_back(std::move(plan_.steps[i]));
      std::move(behind_[i].begin(), behind_[i].end(), std::back_inserter(steps));
    }
    plan_.steps = std::move(steps);
    for (PlanOutput& output : plan_.outputs) {
      if (output.leaves_after >= 0) output.leaves_after = moved[static_cast<size_t>(output.leaves_after)];
    }
  }

 private:
  PlanValueId root(PlanValueId value) const { return roots_[static_cast<size_t>(value)]; }

  void touch(PlanValueId value, int step, bool kept) {
    if (!is_value(value)) return;
    touched_[static_cast<size_t>(root(value))].insert(step);
    if (kept) forbid(value);
  }
  void forbid(PlanValueId value) {
    if (is_value(value)) forbidden_.insert(root(value));
  }

  PlanValueId add_value(PlanValue value, const char* ending) {
    value.name += ending;
    value.program_value = -1;
    roots_.push_back(plan_.add_value(std::move(value)));
    return roots_.back();
  }

  void spill_one(const IdleSpan& span) {
    const int maker = *touched_[static_cast<size_t>(span.value)].begin();
    const std::vector<PlanOrigin>& origins = plan_.steps[static_cast<size_t>(maker)].origins;
    const PlanValue value = plan_.value(span.value);
    const PlanValueId stored = add_value(kind_.store(value), ".stored");
    const PlanValueId restored = add_value(value, ".restored");
    std::vector<PlanStep>& behind = behind_[static_cast<size_t>(span.before)];
    behind.push_back(kind_.make_store(span.value, stored));
    behind.back().origins = origins;
    std::vector<PlanStep>& restoring = before_[static_cast<size_t>(span.after)];
    restoring.push_back(kind_.make_restore(stored, restored));
    restoring.back().origins = origins;
    std::map<PlanValueId, PlanValueId> now = {{span.value, restored}};
    for (size_t i = static_cast<size_t>(span.after); i < plan_.steps.size(); ++i) {
      for (PlanValueId& operand : plan_.steps[i].operands) {
        if (is_value(operand) && root(operand) == span.value) operand = move_view(operand, span.after, now, restoring);
      }
    }
  }

  // The value itself, or a view of it from before the idle span, in the restored memory.
  PlanValueId move_view(PlanValueId value, int after, std::map<PlanValueId, PlanValueId>& now,
                        std::vector<PlanStep>& restoring) {
    if (const auto known = now.find(value); known != now.end()) return known->second;
    const int made = view_of_.at(value);
    if (made >= after) return value;  // follows its operand
    PlanStep step = plan_.steps[static_cast<size_t>(made)];
    auto view = read_step<ViewStep>(step);
    view.x = {move_view(view.x.value, after, now, restoring)};
    view.y = {add_value(plan_.value(value), ".restored")};
    replace_step(step, view);
    restoring.push_back(std::move(step));
    return now[value] = view.y.value;
  }

  Plan& plan_;
  std::span<const int64_t> bytes_;
  const SpillKind& kind_;
  std::vector<PlanValueId> roots_;                      // by value: the value in whose memory it lies
  std::vector<std::set<int>> touched_;                  // by root: steps that make or read it
  std::set<PlanValueId> forbidden_;                     // roots
  std::map<PlanValueId, int> view_of_;                  // by view: the step that makes it
  std::vector<std::vector<PlanStep>> before_, behind_;  // by step
};

}  // namespace

Spills spill_values(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted, const SpillKind& kind) {
  Spills spills;
  for (int round = 0; round < kSpillRounds; ++round) {
    const Footprint footprint = find_footprint(plan, inputs, threads);
    if (footprint.arena_bytes <= wanted) break;
    const MemoryTimeline timeline = trace_arena(plan, inputs, threads);
    SpillPlanner planner(plan, footprint.value_bytes, kind);
    std::vector<IdleSpan> idle = planner.list_idle(timeline.peak_step);
    if (idle.empty()) break;
    int64_t saved = 0;
    size_t count = 0;
    while (count < idle.size() && saved < footprint.arena_bytes - wanted)
      saved += kind.count_saved(idle[count++].bytes);
    idle.resize(count);
    planner.spill(idle);
    for (const IdleSpan& span : idle) ++spills.values, spills.bytes += span.bytes;
  }
  if (spills.values > 0) check_plan(plan);
  return spills;
}

}  // namespace lissome

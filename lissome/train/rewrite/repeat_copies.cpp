// See repeat_copies.h.
#include "lissome/train/rewrite/repeat_copies.h"

#include <algorithm>

#include "lissome/runtime/step/move/copy_steps.h"

namespace lissome {
namespace {

class Repeater {
 public:
  explicit Repeater(Plan& plan) : plan_(plan), copy_of_(plan.values.size(), -1) {
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      if (!is_step<CopyStep>(plan.steps[i])) continue;
      const auto copy = read_step<CopyStep>(plan.steps[i]);
      if (is_input(copy.x.value)) copy_of_[static_cast<size_t>(copy.y.value)] = static_cast<int>(i);
    }
    // The memory of views and outputs must stay.
    for (const PlanStep& step : plan.steps) {
      if (std::any_of(step.results.begin(), step.results.end(), [&](PlanValueId id) { return is_view(id); }))
        std::for_each(step.operands.begin(), step.operands.end(), [&](PlanValueId id) { forget(id); });
    }
    for (const PlanOutput& output : plan.outputs) forget(output.value);
    for (const PlanWrite& write : plan.writes) forget(write.value);
  }

  int run() {
    std::vector<bool> read(plan_.values.size(), false);
    std::vector<PlanStep> steps;
    int added = 0;
    const std::vector<PlanStep> before = std::move(plan_.steps);
    for (PlanStep step : before) {
      for (PlanValueId& operand : step.operands) {
        if (!is_value(operand) || copy_of_[static_cast<size_t>(operand)] < 0) continue;
        const auto copy = static_cast<size_t>(operand);
        if (read[copy]) {
          steps.push_back(before[static_cast<size_t>(copy_of_[copy])]);
          operand = repeat_copy(steps.back());
          ++added;
        }
        read[copy] = true;
      }
      steps.push_back(std::move(step));
    }
    plan_.steps = std::move(steps);
    return added;
  }

 private:
  const PlanValue& value(PlanValueId id) const { return plan_.value(id); }
  bool is_input(PlanValueId id) const { return is_value(id) && value(id).storage == Storage::input; }
  bool is_view(PlanValueId id) const { return value(id).storage == Storage::view; }
  void forget(PlanValueId id) {
    if (is_value(id)) copy_of_[static_cast<size_t>(id)] = -1;
  }

  // Writes the repeated copy into a value of its own, which is returned.
  PlanValueId repeat_copy(PlanStep& step) {
    auto copy = read_step<CopyStep>(step);
    PlanValue made = value(copy.y.value);
    made.name += ".repeated" + std::to_string(plan_.values.size());
    made.program_value = -1;
    copy.y = {plan_.add_value(std::move(made))};
    copy_of_.push_back(-1);
    replace_step(step, copy);
    return copy.y.value;
  }

  Plan& plan_;
  std::vector<int> copy_of_;  // by value: the step that copies an input there, -1 for none
};

}  // namespace

int repeat_copies(Plan& plan) {
  const int added = Repeater(plan).run();
  if (added > 0) check_plan(plan);
  return added;
}

}  // namespace lissome

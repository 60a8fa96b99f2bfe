// Turns schedules into plans and keeps the best.
#pragma once

#include <optional>
#include <string>

#include "lissome/train/budget/search/spill_step.h"

namespace lissome {

class BestStep {
 public:
  // Borrows the task.
  explicit BestStep(const PlanningTask& task) : task_(task), rates_(task.budget.offload_folder) {}

  // Applies the schedule to the step and lowers it. Where the plan exceeds the budget, spills are tried too. Keeps each
  // of these plans if it is the best so far (is_better_step). Returns the predicted memory without spills. A schedule
  // that check_schedule() refuses is an internal error. Throws the errors of `lower` and of spilling.
  StepMemory take(const std::string& method, const RunOrder& schedule);

  // take() for a schedule that each run finds again.
  void take_surely(const std::string& method, const RunOrder& schedule);

  // The next plan is then taken as if it were the first.
  void forget() { best_.reset(); }

  // Of the best plan; one must have been taken.
  const PlannedStep& get() const { return best_.value(); }
  bool fits() const { return fits_budget(get(), task_.budget.memory); }
  // The bytes that are enough in each run, where take_surely() got a schedule: a search by measured times may find less
  // in one run and not in the next. Else those of the best plan.
  int64_t sure_bytes() const { return sure_bytes_.value_or(get().memory.total()); }
  PlannedStep release() { return std::move(best_.value()); }

 private:
  void keep_better(PlannedStep step);

  const PlanningTask& task_;
  SpillRates rates_;
  std::optional<PlannedStep> best_;
  std::optional<int64_t> sure_bytes_;
};

}  // namespace lissome

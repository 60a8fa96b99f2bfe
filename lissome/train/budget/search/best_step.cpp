// See best_step.h.
#include "lissome/train/budget/search/best_step.h"

#include <algorithm>

#include "lissome/train/remat/recompute.h"

namespace lissome {

StepMemory BestStep::take(const std::string& method, const RunOrder& schedule) {
  const StepModel& model = task_.facts.model;
  const StepSource& source = task_.source;
  const std::string wrong = check_schedule(model, schedule);
  LISSOME_CHECK(wrong.empty(), method, ": ", wrong);
  Plan plan = schedule == task_.plain ? *source.plan : task_.lower(apply_schedule(*source.program, schedule));
  const StepMemory memory = predict_memory(task_.facts, schedule, plan, task_.sizes, source.threads);
  const double seconds = judge_schedule(model, schedule, INT64_MAX).seconds;
  PlannedStep exact{schedule, std::move(plan), memory, seconds, method, {}, {}};
  // Spills take time: with them the plan can only be better if the schedule alone is faster.
  const bool hopeless = best_ && fits() && seconds >= best_->seconds;
  if (!fits_budget(exact, task_.budget.memory) && !hopeless) {
    if (task_.budget.lossy) {
      if (std::optional<PlannedStep> lossy = spill_to_bf16(task_, exact, rates_)) keep_better(std::move(*lossy));
    }
    if (!task_.budget.offload_folder.empty()) {
      if (std::optional<PlannedStep> moved = spill_to_file(task_, exact, rates_)) keep_better(std::move(*moved));
    }
  }
  keep_better(std::move(exact));
  return memory;
}

void BestStep::take_surely(const std::string& method, const RunOrder& schedule) {
  const int64_t bytes = take(method, schedule).total();
  sure_bytes_ = std::min(bytes, sure_bytes_.value_or(bytes));
}

void BestStep::keep_better(PlannedStep step) {
  if (!best_ || is_better_step(step, *best_, task_.budget.memory)) best_ = std::move(step);
}

}  // namespace lissome

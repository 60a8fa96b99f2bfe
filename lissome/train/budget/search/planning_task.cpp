// See planning_task.h.
#include "lissome/train/budget/search/planning_task.h"

#include <algorithm>

namespace lissome {

PlanningTask measure_task(const StepSource& source, const std::vector<at::Tensor>& measured, std::vector<Sizes> sizes,
                          const StepBudget& budget, const LowerStep& lower) {
  PlanningTask task{source, budget, lower, std::move(sizes), {}, {}, {}, 0};
  task.facts = measure_step(source, measured, task.sizes);
  task.plain = make_plain_schedule(task.facts.model);
  task.plain_memory = predict_memory(task.facts, task.plain, *source.plan, task.sizes, source.threads);
  task.plain_seconds = judge_schedule(task.facts.model, task.plain, INT64_MAX).seconds;
  return task;
}

double choose_search_seconds(const PlanningTask& task) {
  constexpr double kForStepSecond = 100, kLeast = 10, kMost = 60;
  return std::clamp(kForStepSecond * task.plain_seconds, kLeast, kMost);
}

int64_t count_leaving_bytes(const StepModel& model) {
  int64_t bytes = 0;
  for (const int value : model.leaving) {
    const int owner = model.owner[static_cast<size_t>(value)];
    if (owner >= 0) bytes += model.bytes[static_cast<size_t>(owner)];
  }
  return bytes;
}

}  // namespace lissome

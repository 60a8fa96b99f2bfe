// See budget.h. Measures the step, searches for a schedule (search/), and words the result.
#include "lissome/train/budget/budget.h"

#include "lissome/train/budget/facts/size_prediction.h"
#include "lissome/train/budget/measured_batch.h"
#include "lissome/train/budget/search/fit_to_budget.h"
#include "lissome/train/budget/search/step_times.h"
#include "lissome/train/rewrite/keep_modules.h"
#include "lissome/train/rewrite/split_scores.h"

namespace lissome {
namespace {

RunOrder schedule_recomputed(const PlanningTask& task, const RecomputeSet& recomputed) {
  return make_recompute_schedule(task.facts.model, task.plain, recomputed).schedule;
}

// Takes the schedule that the user asked for, or searches for one.
BestStep choose_step(const PlanningTask& task) {
  BestStep best(task);
  const Recompute& wanted = task.budget.recompute;
  const Program& program = *task.source.program;
  if (std::holds_alternative<KeepAll>(wanted)) {
    best.take("keep all", task.plain);
  } else if (const auto* every = std::get_if<RecomputeEvery>(&wanted)) {
    best.take("every " + std::to_string(every->modules),
              schedule_recomputed(task, recompute_inside_modules(program, task.facts.model, every->modules)));
  } else if (const auto* modules = std::get_if<RecomputeModules>(&wanted)) {
    best.take("modules " + modules->pattern,
              schedule_recomputed(task, recompute_modules(program, task.facts.model, modules->pattern)));
  } else {
    fit_to_budget(task, std::get<RecomputeToFit>(wanted).share, best);
  }
  return best;
}

StepForecast make_forecast(const PlanningTask& task, const PlannedStep& chosen) {
  const StepModel& model = task.facts.model;
  return {.plain = task.plain_memory,
          .chosen = chosen.memory,
          .leaving = count_leaving_bytes(model),
          .plain_seconds = task.plain_seconds,
          .seconds = chosen.seconds,
          .recomputed_nodes = static_cast<int>(chosen.schedule.size() - model.nodes.size()),
          .stored_lossy = chosen.lossy.values,
          .offloaded = chosen.offloaded.values,
          .offloaded_bytes = chosen.offloaded.bytes,
          .method = chosen.method,
          .modules = describe_modules(*task.source.program, model, chosen.schedule)};
}

// Makes a forecast of a step with scores in blocks one against the step that keeps everything and does not split them.
void compare_with(const StepForecast& whole, StepForecast& blocks) {
  blocks.plain = whole.plain;
  blocks.leaving = whole.leaving;
  blocks.plain_seconds = whole.plain_seconds;
  blocks.method = "scores in blocks, " + blocks.method;
}

void use_times(const std::optional<StepSeconds>& times, StepForecast& forecast) {
  if (!times) return;
  forecast.seconds = times->seconds;
  forecast.plain_seconds = times->plain_seconds;
}

// The bytes as a value for --memory, rounded up.
std::string suggest_memory(int64_t bytes) {
  const int64_t mib = int64_t{1} << 20, kib = int64_t{1} << 10;
  if (bytes >= 64 * mib) return std::to_string((bytes + mib - 1) / mib) + "MiB";
  return std::to_string((bytes + kib - 1) / kib) + "KiB";
}

// `enough`: bytes for activations and scratch with which a plan is found in each run. A little more is asked for: what
// a kernel of libtorch takes for itself need not be what it took on the measured batch.
[[noreturn]] void refuse_budget(const StepForecast& least, int64_t enough, const StepBudget& budget) {
  constexpr int64_t kShare = 50, kLeast = 32 << 10;
  const int64_t more = std::max(enough / kShare, kLeast);
  throw_error(ErrorKind::over_budget, "a training step at these sizes takes ", format_bytes(least.plain.total()),
              " for activations and scratch, ", format_bytes(least.chosen.total()),
              " at the least found by recomputing", budget.offload_folder.empty() ? "" : " and offloading",
              "; the budget leaves ", format_bytes(budget.memory), " for them.\n      Give --memory ",
              suggest_memory(budget.beside + enough + more), " or a smaller --batch.");
}

// The inputs of a step, weights included: on which times are measured, and the whole batch.
struct PlanningInputs {
  std::vector<at::Tensor> measured, all;
};

// The chosen plan with its time measured on the whole batch; throws over_budget where it does not fit.
BudgetedPlan finish_plan(const PlanningTask& task, BestStep best, const PlanningTask& whole, StepForecast forecast,
                         const PlanningInputs& inputs) {
  use_times(time_chosen(task, best.get(), whole, inputs.measured, inputs.all), forecast);
  if (!best.fits()) refuse_budget(forecast, best.sure_bytes(), task.budget);
  return {best.release().plan, std::move(forecast)};
}

// Plans the step with the scores of a classifier in blocks. Returns a plan if only this fits, or if it is faster than
// `best` of `whole`, which recomputes until the step fits.
std::optional<BudgetedPlan> plan_in_blocks(const PlanningTask& whole, const BestStep& best,
                                           const PlanningInputs& inputs) {
  const StepBudget& budget = whole.budget;
  if (!budget.split_scores) return std::nullopt;
  Program program = *whole.source.program;
  if (split_scores(program, *whole.source.plan, bind_sizes(program, whole.sizes)) == 0) return std::nullopt;
  const Plan plan = whole.lower(program);
  PlanningTask blocks =
      measure_task({&program, &plan, whole.source.threads, {}}, inputs.measured, whole.sizes, budget, whole.lower);
  follow_clock(blocks, whole);
  if (best.fits() && best.get().seconds <= blocks.plain_seconds) return std::nullopt;
  BestStep found = choose_step(blocks);
  const bool better = best.fits() ? found.fits() && found.get().seconds < best.get().seconds
                                  : found.get().memory.total() < best.get().memory.total();
  if (!better) return std::nullopt;
  StepForecast forecast = make_forecast(blocks, found.get());
  compare_with(make_forecast(whole, best.get()), forecast);
  return finish_plan(blocks, std::move(found), whole, std::move(forecast), inputs);
}

}  // namespace

BudgetedPlan plan_within_budget(const StepSource& source, const std::vector<at::Tensor>& examples,
                                const std::vector<at::Tensor>& weights, const StepBudget& budget,
                                const std::function<Plan(const Program&)>& lower) {
  PlanningInputs inputs{choose_measured(source, examples, weights, budget), {}};
  const PlanningTask whole =
      measure_task(source, inputs.measured, list_all_sizes(budget.sizes, weights), budget, lower);
  BestStep best = choose_step(whole);
  inputs.all = repeat_samples(examples, budget.sizes, weights);
  const bool keeps_all =
      best.fits() && best.get().schedule.size() == whole.plain.size() && best.get().offloaded.values == 0;
  if (!keeps_all && std::holds_alternative<RecomputeToFit>(budget.recompute)) {
    if (std::optional<BudgetedPlan> blocks = plan_in_blocks(whole, best, inputs)) return std::move(*blocks);
  }
  StepForecast forecast = make_forecast(whole, best.get());
  return finish_plan(whole, std::move(best), whole, std::move(forecast), inputs);
}

}  // namespace lissome

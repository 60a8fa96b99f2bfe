// A measured step and its budget, from which the search for a schedule starts.
#pragma once

#include <functional>
#include <vector>

#include "lissome/train/budget/facts/step_memory.h"
#include "lissome/train/budget/step_budget.h"

namespace lissome {

// The plan of a program with the inputs and outputs of the step.
using LowerStep = std::function<Plan(const Program&)>;

// Borrows the source's program and plan, the budget and `lower`.
struct PlanningTask {
  StepSource source;
  const StepBudget& budget;
  const LowerStep& lower;
  std::vector<Sizes> sizes;  // of all inputs, weights included
  StepFacts facts;           // measured, at these sizes
  RunOrder plain;            // the schedule that keeps everything
  StepMemory plain_memory;
  double plain_seconds = 0;  // the sum over nodes
};

// Measures the step on `measured`, inputs with weights included. Throws the errors of measure_step().
PlanningTask measure_task(const StepSource& source, const std::vector<at::Tensor>& measured, std::vector<Sizes> sizes,
                          const StepBudget& budget, const LowerStep& lower);

// The time that a search for schedules may take: more where the step, whose memory it spares, takes long.
double choose_search_seconds(const PlanningTask& task);

// Bytes of outputs and gradients, which no schedule frees.
int64_t count_leaving_bytes(const StepModel& model);

}  // namespace lissome

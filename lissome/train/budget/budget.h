// Training inside a memory budget: chooses which values a step keeps and which it recomputes, by measured times and by
// the plan of the resulting step, so that the predicted memory is what the planner lays out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/runtime.h"
#include "lissome/train/budget/facts/step_memory.h"
#include "lissome/train/budget/module_forecast.h"
#include "lissome/train/budget/step_budget.h"

namespace lissome {

// The predicted memory and time of a step.
struct StepForecast {
  StepMemory plain, chosen;  // peaks of the step that keeps everything and of the chosen one
  int64_t leaving = 0;       // bytes of outputs and gradients, which cannot be recomputed, included in both
  double plain_seconds = 0, seconds = 0;  // sums over nodes, of both steps
  int recomputed_nodes = 0;               // repeated runs of nodes
  int stored_lossy = 0;                   // activations that are kept in bf16
  int offloaded = 0;                      // activations that are kept in a file
  int64_t offloaded_bytes = 0;
  std::string method;  // "keep all", "recompute", "chain and recompute", "stages and recompute", "every 2", ...
  std::vector<ModuleForecast> modules;
};

struct BudgetedPlan {
  Plan plan;
  StepForecast forecast;
};

// `source` as for measure_step(), `examples` for its first inputs, `weights` for the others. `lower` makes the plan of
// a program with the inputs and outputs of the source. Throws over_budget where no schedule fits, naming the smallest
// budget that does; usage where no module matches the pattern of RecomputeModules; and the errors of measure_step(),
// `lower` and, with a folder, UnnamedFile.
BudgetedPlan plan_within_budget(const StepSource& source, const std::vector<at::Tensor>& examples,
                                const std::vector<at::Tensor>& weights, const StepBudget& budget,
                                const std::function<Plan(const Program&)>& lower);

}  // namespace lissome

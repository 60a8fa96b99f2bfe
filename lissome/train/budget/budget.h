// Training inside a memory budget: chooses which values a step keeps and which it recomputes, by measured times and by
// the plan of the resulting step, so that the predicted memory is what the planner lays out.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lissome/program.h"
#include "lissome/runtime.h"
#include "lissome/train/budget/cost.h"
#include "lissome/train/budget/module_forecast.h"

namespace lissome {

struct KeepAll {};
// Keeps of the forward pass only the inputs of every `modules`-th module of the outermost list.
struct RecomputeEvery {
  int modules = 1;
};
// Recomputes values inside modules that match this shell-style pattern. Outputs of these modules are kept.
struct RecomputeModules {
  std::string pattern;
};
// Recomputes as little as the budget allows.
struct RecomputeToFit {
  double share = 1;  // fraction of the budget that may be filled before anything is recomputed, 0 to 1
};
using Recompute = std::variant<KeepAll, RecomputeEvery, RecomputeModules, RecomputeToFit>;

// "none", "every:2", "modules:blocks.*", "auto", "adaptive:0.8". Throws usage for other words.
Recompute parse_recompute(const std::string& text);

// Weights that are kept in a file: their bytes, and how many of these a step may have in memory at once.
struct StreamedWeights {
  int64_t bytes = 0, at_once = 0;
};

struct StepBudget {
  Recompute recompute = RecomputeToFit{};
  int64_t memory = 0;        // bytes for the arena and for values that libtorch holds; 0: no limit
  std::vector<Sizes> sizes;  // of the program's inputs at the largest batch, without weights
  bool lossy = false;        // activations may be kept in bf16 where that helps, see store_in_bf16()
  // Folder for activations in a file, see store_in_file(); empty: none. The session of the plan needs it too.
  std::string offload_folder = {};
  StreamedWeights weights = {};  // beside `memory`; 0 bytes: all weights are in memory
  int64_t beside = 0;            // bytes that the user's limit holds beside `memory`, for messages
  bool split_scores = true;      // the scores of many classes may be computed in blocks; see split_scores.h
};

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

// `source` as for measure_step(), `examples` for its first inputs, `weights` for the others. Throws over_budget where
// no schedule fits, naming the smallest budget that does.
BudgetedPlan plan_within_budget(const StepSource& source, const std::vector<at::Tensor>& examples,
                                const std::vector<at::Tensor>& weights, const StepBudget& budget,
                                const std::function<Plan(const Program&)>& lower);

}  // namespace lissome

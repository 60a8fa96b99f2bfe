// Training inside a memory budget: which values a step keeps and which it makes again, chosen by measured times and by
// the plan that comes of it, so that what is promised is what the planner lays out.
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
// Of the forward pass only what enters every `modules`-th module of the outermost list is kept.
struct RecomputeEvery {
  int modules = 1;
};
// What modules of this shell-style pattern make is made again, but for what leaves them.
struct RecomputeModules {
  std::string pattern;
};
// As little as the budget allows.
struct RecomputeToFit {
  double share = 1;  // of the budget that may be filled before anything is made again, 0 to 1
};
using Recompute = std::variant<KeepAll, RecomputeEvery, RecomputeModules, RecomputeToFit>;

// "none", "every:2", "modules:blocks.*", "auto", "adaptive:0.8". Throws usage for other words.
Recompute parse_recompute(const std::string& text);

// Weights that lie in a file: how many bytes, and how many of them a step may have in memory at once.
struct StreamedWeights {
  int64_t bytes = 0, at_once = 0;
};

struct StepBudget {
  Recompute recompute = RecomputeToFit{};
  int64_t memory = 0;        // bytes for what lives inside a step: the arena and what libtorch holds; 0: no limit
  std::vector<Sizes> sizes;  // of the program's inputs, the largest batch; without weights
  bool lossy = false;        // activations may be stored in bf16 where that helps, see store_in_bf16()
  // Where activations may wait in a file, see store_in_file(); empty: nowhere. The session of the plan needs it too.
  std::string offload_folder = {};
  StreamedWeights weights = {};  // beside `memory`; none: weights lie in memory
  int64_t beside = 0;            // bytes of the user's limit that are taken beside `memory`, for messages
  bool split_scores = true;      // the scores of many classes may be made in blocks; see split_scores.h
};

// What a step keeps and what it costs, as told before it ran.
struct StepForecast {
  StepMemory plain, chosen;  // peaks without and with recomputation
  int64_t leaving = 0;       // of these, outputs and gradients that are no activations and cannot be made again
  double plain_seconds = 0, seconds = 0;  // sums over nodes
  int runs_again = 0;                     // nodes that run more than once
  int stored_lossy = 0;                   // activations that wait in bf16
  int offloaded = 0;                      // that wait in a file
  int64_t offloaded_bytes = 0;
  std::string method;  // "keep all", "drops", "chain and drops", "stages and drops", "every 2", ...
  std::vector<ModuleForecast> modules;
};

struct BudgetedPlan {
  Plan plan;
  StepForecast forecast;
};

// `source` as measure_step() takes it, with `examples` of its first inputs; `weights` are the others. over_budget where
// no schedule fits: names the least that does.
BudgetedPlan plan_within_budget(const StepSource& source, const std::vector<at::Tensor>& examples,
                                const std::vector<at::Tensor>& weights, const StepBudget& budget,
                                const std::function<Plan(const Program&)>& lower);

}  // namespace lissome

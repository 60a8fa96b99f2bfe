// The bytes that a training step may take, and the means that may be used to fit it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lissome/base.h"
#include "lissome/measure.h"
#include "lissome/train/budget/recompute_choice.h"

namespace lissome {

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
  std::function<void(const Progress&)> on_progress = {};  // may be empty; where the search for a schedule is
};

}  // namespace lissome

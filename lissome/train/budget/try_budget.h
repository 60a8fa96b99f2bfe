// Tries one training step inside a memory budget: its predicted and its measured memory and time.
#pragma once

#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/pass.h"
#include "lissome/train/budget/training_bytes.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

struct BudgetTrial {
  TrainingBytes fixed;      // weights, gradients, states, updates
  int64_t batch_bytes = 0;  // inputs of the step
  int64_t memory = 0;       // the limit that was asked for
  StepForecast predicted;   // activations and scratch
  StepMemory measured;      // the same, measured
  int64_t weights_measured = 0;
  Summary seconds;                 // measured, of a step
  std::vector<PassResult> passes;  // what the training passes changed
  std::string notice;  // the batches for which gradients cannot be recorded, and why; empty where there are none
  int64_t beside() const { return fixed.total() + batch_bytes; }
  int64_t keeping_all() const { return beside() + fixed.saved() + predicted.plain.total(); }
  int64_t all_predicted() const { return beside() + predicted.chosen.total(); }
  int64_t all_measured() const { return beside() - fixed.weights + weights_measured + measured.total(); }
};

// Plans and runs steps of options.batch samples within options.memory bytes in all; samples repeat if `data` has fewer.
// Reads of the options: loss, optimizer, groups, offload, precision (which must be given), recompute,
// update_in_backward, lossy_activations, disabled_passes and threads. Weights stay as they are; running statistics
// change. If weights in memory do not fit and options.offload names a folder, they are kept in a file there meanwhile.
// Throws over_budget, naming the smallest budget that is enough, and the errors of attach_loss() and
// check_offload_folder().
BudgetTrial try_budget(const Program& model, const Dataset& data, const TrainOptions& options);

}  // namespace lissome

// One step of a training inside a memory budget: what it was told to take, and what it took.
#pragma once

#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/pass.h"
#include "lissome/train/budget/training_bytes.h"
#include "lissome/train/loop/trainer.h"

namespace lissome {

struct BudgetTrial {
  TrainingBytes fixed;      // weights, gradients, states
  int64_t batch_bytes = 0;  // the inputs
  int64_t memory = 0;       // asked for
  StepForecast told;        // of activations and scratch
  StepMemory measured;      // of the same
  int64_t weights_measured = 0;
  Summary seconds;                 // of a step
  std::vector<PassResult> passes;  // what the training passes changed
  std::string notice;  // what batches no gradients can be recorded for, and why; empty where they can for all
  int64_t beside() const { return fixed.total() + batch_bytes; }
  int64_t keeping_all() const { return beside() + fixed.saved() + told.plain.total(); }
  int64_t all_told() const { return beside() + told.chosen.total(); }
  int64_t all_measured() const { return beside() - fixed.weights + weights_measured + measured.total(); }
};

// Plans and runs steps of options.batch samples, which come round again where `data` has fewer, for options.memory
// bytes in all. Of the options it reads the loss, optimizer, groups, offload, precision (which must be given),
// recompute, update_in_backward, lossy_activations and threads. Weights stay; running statistics do not. Throws
// over_budget: the message names the least that does; what attach_loss() and check_offload_folder() throw. Where
// weights in memory do not fit and there is a folder to offload to, they lie in a file there meanwhile.
BudgetTrial try_budget(const Program& model, const Dataset& data, const TrainOptions& options);

}  // namespace lissome

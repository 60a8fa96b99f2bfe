// The record of a training as plain data: callbacks get it while training runs, train() returns it, snapshots keep it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/train/budget/memory_view.h"

namespace lissome {

// One optimizer step, or the mean of several (StepHistory).
struct TrainStepRecord {
  int64_t epoch = 0, step = 0;  // from 1; steps are counted over all epochs
  int64_t samples = 0;          // of the batch
  double loss = 0, learning_rate = 0;
  double gradient_norm = 0;  // global, before clipping
  double seconds_data = 0, seconds_gradients = 0,
         seconds_update = 0;  // loading the batch; forward and backward pass; optimizer
  double memory = 0;          // resident set of the process, bytes
  bool skipped = false;       // a gradient was not finite

  double seconds() const { return seconds_data + seconds_gradients + seconds_update; }
};

struct EpochRecord {
  int64_t epoch = 0;         // from 1
  int64_t step = 0;          // its last step
  double loss = 0;           // mean over its batches, each with the weights before its update
  double learning_rate = 0;  // of its last step
  double seconds = 0;
  std::optional<double> validation_loss;                           // in eval form
  std::vector<std::pair<std::string, double>> validation_metrics;  // "accuracy", "mean_absolute_error", the user's own
};

// The course of many steps in little memory: each point is the mean of `stride` steps, and the stride doubles when
// there are too many points.
struct StepHistory {
  int64_t stride = 1;
  std::vector<TrainStepRecord> points;
  TrainStepRecord sum;  // sum of the steps since the last point
  int64_t summed = 0;   // number of these steps
};
inline constexpr size_t kMostHistoryPoints = 2000;
void add_step(StepHistory& history, const TrainStepRecord& step);

struct TrainRecord {
  std::vector<EpochRecord> epochs;
  StepHistory history;
  int64_t steps = 0, skipped_steps = 0;  // skipped: a gradient was not finite
  int64_t batch = 0;                     // most samples that run at once, at the end of training
  int64_t peak_memory = 0;               // bytes of weights, activations, gradients, states, by the allocators' count
  std::vector<int64_t> step_memory;      // activations and scratch over the kernels of a step, bytes
  std::vector<MemoryPlace> places;       // values alive at the peak of a step
  std::vector<std::string> notes;        // choices that a user might not expect, and observations
  // Measured after the last step on some of the training samples, if there is no validation data.
  std::vector<std::pair<std::string, double>> training_metrics;
  bool interrupted = false, stopped_early = false;
};

}  // namespace lissome

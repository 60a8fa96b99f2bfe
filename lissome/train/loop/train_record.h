// What training did, as plain data: what callbacks get while it runs, what train() returns, what snapshots carry on.
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
  int64_t epoch = 0, step = 0;  // from 1; steps count over all epochs
  int64_t samples = 0;          // of its batch
  double loss = 0, learning_rate = 0;
  double gradient_norm = 0;                                            // global, before clipping
  double seconds_data = 0, seconds_gradients = 0, seconds_update = 0;  // batch; forward and backward; optimizer
  double memory = 0;                                                   // resident set of the process, bytes
  bool skipped = false;                                                // a gradient was not finite

  double seconds() const { return seconds_data + seconds_gradients + seconds_update; }
};

struct EpochRecord {
  int64_t epoch = 0;         // from 1
  int64_t step = 0;          // its last one
  double loss = 0;           // mean over its batches, as they were met
  double learning_rate = 0;  // of its last step
  double seconds = 0;
  std::optional<double> validation_loss;                           // in eval form
  std::vector<std::pair<std::string, double>> validation_metrics;  // "accuracy", "mean_absolute_error", the user's own
};

// A course of many steps in little memory: each point is the mean of `stride` steps, and the stride doubles whenever
// there are too many points.
struct StepHistory {
  int64_t stride = 1;
  std::vector<TrainStepRecord> points;
  TrainStepRecord sum;  // of the steps that fill no point yet
  int64_t summed = 0;
};
inline constexpr size_t kMostHistoryPoints = 2000;
void add_step(StepHistory& history, const TrainStepRecord& step);

struct TrainRecord {
  std::vector<EpochRecord> epochs;
  StepHistory history;
  int64_t steps = 0, skipped_steps = 0;  // skipped: a gradient was not finite
  int64_t batch = 0;                     // samples that ran at once at most, at the end
  int64_t peak_memory = 0;               // bytes of weights, activations, gradients, states, by the allocators' count
  std::vector<int64_t> step_memory;      // activations and scratch over the kernels of a step, bytes
  std::vector<MemoryPlace> places;       // what is alive where a step takes most
  std::vector<std::string> notes;        // what was done otherwise than one might expect, and what was noticed
  // Of some of the samples that were trained on, after the last step, where nothing was validated.
  std::vector<std::pair<std::string, double>> training_metrics;
  bool interrupted = false, stopped_early = false;
};

}  // namespace lissome

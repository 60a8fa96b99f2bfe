// Saves everything that changes while a training runs into a snapshot, and restores it. Every part of training with a
// state of its own, such as the loss scaler, has a section here.
#pragma once

#include "lissome/train/loop/early_stop.h"
#include "lissome/train/loop/snapshot_file.h"
#include "lissome/train/loop/train_record.h"
#include "lissome/train/optim/loss_scaler.h"
#include "lissome/train/optim/moving_average.h"
#include "lissome/train/optim/schedule.h"

namespace lissome {

// The position of a training.
struct TrainingPlace {
  int64_t epoch = 1;        // the running epoch
  int64_t epoch_steps = 0;  // finished steps of this epoch
  double losses = 0;        // sum over the samples of this epoch so far
  int64_t samples = 0;
  double learning_rate = 0;  // of the last step
  double seconds = 0;        // spent on this epoch
};

struct TrainingState {
  NamedTensors tensors;  // weights and running statistics, each storage once
  Optimizer& optimizer;
  Schedule& schedule;
  EarlyStop* early_stop = nullptr;   // null: none
  MovingAverage* average = nullptr;  // null: none
  LossScaler* scaler = nullptr;      // null: none
  TrainingPlace& place;
  TrainRecord& record;
};

// Includes the state of the default CPU generator. Entries on the CPU are the tensors themselves, not copies.
Snapshot make_snapshot(const TrainingState& state, TrainingFacts facts);
// Checks all entries before it changes anything. Throws invalid_input for entries that are missing or do not fit.
void restore_snapshot(const Snapshot& snapshot, const TrainingState& state);

}  // namespace lissome

// All that changes while a training runs, put into a snapshot and taken out again. A part that is added to training and
// has a state of its own (a loss scaler) gets a section here.
#pragma once

#include "lissome/train/loop/early_stop.h"
#include "lissome/train/loop/snapshot_file.h"
#include "lissome/train/loop/train_record.h"
#include "lissome/train/optim/loss_scaler.h"
#include "lissome/train/optim/moving_average.h"
#include "lissome/train/optim/schedule.h"

namespace lissome {

// Where a training stands.
struct TrainingPlace {
  int64_t epoch = 1;        // the one that runs
  int64_t epoch_steps = 0;  // done of it
  double losses = 0;        // of it: sum over its samples so far
  int64_t samples = 0;
  double learning_rate = 0;  // of its last step
  double seconds = 0;        // spent on it
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

// The default CPU generator goes with it. Entries are the tensors themselves, not copies, where they are on the CPU.
Snapshot make_snapshot(const TrainingState& state, TrainingFacts facts);
// Checks all entries before it changes anything. Throws invalid_input for what lacks or does not fit.
void restore_snapshot(const Snapshot& snapshot, const TrainingState& state);

}  // namespace lissome

// How far a training has come and what it has recorded so far.
#pragma once

#include <cstdint>

#include "lissome/train/loop/train_record.h"
#include "lissome/train/loop/training_state.h"

namespace lissome {

struct TrainingCourse {
  TrainingPlace place;
  TrainRecord record;
  int64_t first_step = 0;  // steps that had been finished before this run began

  // Finished steps of this run.
  int64_t steps_here() const { return record.steps - first_step; }
  // Mean loss over the samples of this epoch so far; 0 before the first.
  double mean_loss() const;
  // Counts a finished step. place.seconds is left to the caller, whose clock runs.
  void add(const TrainStepRecord& step);
  // The record of the running epoch up to its last finished step, without `seconds` and validation.
  EpochRecord summarize_epoch() const;
  void begin_next_epoch() { place = {.epoch = place.epoch + 1}; }
};

}  // namespace lissome

// Says how far a training is, how fast it runs and how long it still takes.
#pragma once

#include <cstdint>

#include "lissome/measure.h"
#include "lissome/train/loop/train_length.h"
#include "lissome/train/loop/training_course.h"

namespace lissome {

// "epoch 2 of 3, step 4 of 10, loss 0.1234, rate 0.001, 800 samples/s, 1.2 GiB": where the training is after `step`,
// the last one of `course`. `samples`: of an update; `seconds`: since this run began.
Progress describe_progress(const TrainLength& length, const TrainingCourse& course, const TrainStepRecord& step,
                           int64_t samples, double seconds);

class ProgressMeter {
 public:
  // The clock starts now. `samples`: of an update.
  ProgressMeter(const TrainLength& length, int64_t samples) : length_(length), samples_(samples) {}

  Progress describe(const TrainingCourse& course, const TrainStepRecord& step) const {
    return describe_progress(length_, course, step, samples_, watch_.seconds());
  }

 private:
  TrainLength length_;
  int64_t samples_;
  Stopwatch watch_;
};

}  // namespace lissome

// Judges the model after each epoch: by validation data if there are any, else by the training loss. Schedule and early
// stopping go by its metric.
#pragma once

#include <cstdint>

#include "lissome/data.h"
#include "lissome/measure.h"
#include "lissome/train/loop/learn/learner.h"
#include "lissome/train/loop/result_weights.h"
#include "lissome/train/loop/train_record.h"
#include "lissome/train/loop/training_metrics.h"
#include "lissome/train/optim/schedule.h"

namespace lissome {

enum class EpochVerdict : uint8_t {
  interrupted,  // the work was stopped, so that nothing was judged
  go_on,
  stop_early
};

class EpochJudge {
 public:
  // All arguments must outlive it; `validation` may be null. Throws the errors of ResultWeights.
  EpochJudge(const Learner& learner, const Dataset* validation, const TrainOptions& options,
             const WorkControl& control);

  // Validates an epoch, into `record`, and lets `schedule` and early stopping see its metric. `at_once`: samples that
  // run at once.
  EpochVerdict judge(EpochRecord& record, Schedule& schedule, int64_t at_once);
  bool has_validation() const { return validation_ != nullptr; }
  ResultWeights& results() { return results_; }

 private:
  bool validate_epoch(EpochRecord& record, int64_t at_once);

  const Learner& learner_;
  const Dataset* validation_;
  const TrainOptions& options_;
  const WorkControl& control_;
  ResultWeights results_;
};

}  // namespace lissome

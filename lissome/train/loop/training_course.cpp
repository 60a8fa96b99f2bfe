// See training_course.h.
#include "lissome/train/loop/training_course.h"

#include <algorithm>

namespace lissome {

double TrainingCourse::mean_loss() const {
  return place.losses / static_cast<double>(std::max<int64_t>(place.samples, 1));
}

void TrainingCourse::add(const TrainStepRecord& step) {
  place.losses += step.loss * static_cast<double>(step.samples);
  place.samples += step.samples;
  place.learning_rate = step.learning_rate;
  ++place.epoch_steps;
  record.skipped_steps += step.skipped ? 1 : 0;
  ++record.steps;
  add_step(record.history, step);
}

EpochRecord TrainingCourse::summarize_epoch() const {
  return {.epoch = place.epoch,
          .step = record.steps,
          .loss = mean_loss(),
          .learning_rate = place.learning_rate,
          .validation_loss = {},
          .validation_metrics = {}};
}

}  // namespace lissome

// See progress_meter.h.
#include "lissome/train/loop/watch/progress_meter.h"

#include <cstdio>
#include <string>

namespace lissome {

Progress describe_progress(const TrainLength& length, const TrainingCourse& course, const TrainStepRecord& step,
                           int64_t samples, double seconds) {
  const double all = static_cast<double>(length.total_steps());
  const double here = static_cast<double>(course.steps_here());
  const double done = static_cast<double>(course.record.steps);
  char message[200];
  std::snprintf(message, sizeof message, "epoch %lld of %lld, step %lld of %lld, loss %.4f, rate %.2g, %.0f samples/s",
                static_cast<long long>(step.epoch), static_cast<long long>(length.epochs),
                static_cast<long long>(course.place.epoch_steps), static_cast<long long>(length.steps_per_epoch),
                course.mean_loss(), step.learning_rate, here * static_cast<double>(samples) / seconds);
  return {"training", std::string(message) + ", " + format_bytes(static_cast<int64_t>(step.memory)), done / all,
          seconds / here * (all - done)};
}

}  // namespace lissome

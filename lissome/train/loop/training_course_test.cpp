// How long a training is, how far it has come, and the words for its progress.
#include "lissome/train/loop/training_course.h"

#include <doctest/doctest.h>

#include "lissome/train/loop/train_length.h"
#include "lissome/train/loop/watch/progress_meter.h"

using namespace lissome;

namespace {

TrainingCourse make_course() {
  TrainingCourse course;
  course.record.steps = course.first_step = 5;
  course.add({.epoch = 1, .step = 6, .samples = 2, .loss = 1, .learning_rate = 0.1});
  course.add({.epoch = 1, .step = 7, .samples = 6, .loss = 3, .learning_rate = 0.2, .skipped = true});
  return course;
}

}  // namespace

TEST_CASE("a training is as long as its epochs, or as its largest number of steps") {
  TrainLength length{.epochs = 3, .steps_per_epoch = 10, .max_steps = {}};
  CHECK(length.total_steps() == 30);
  CHECK_FALSE(length.reached_most(30));
  length.max_steps = 14;
  CHECK(length.total_steps() == 14);
  CHECK_FALSE(length.reached_most(13));
  CHECK(length.reached_most(14));
  length.max_steps = 50;
  CHECK(length.total_steps() == 30);
}

TEST_CASE("a course counts steps and samples, and its loss is the mean over samples") {
  TrainingCourse course = make_course();
  CHECK(course.record.steps == 7);
  CHECK(course.steps_here() == 2);
  CHECK(course.record.skipped_steps == 1);
  CHECK(course.record.history.points.size() == 2);
  CHECK(course.mean_loss() == 2.5);
  const EpochRecord epoch = course.summarize_epoch();
  CHECK(epoch.epoch == 1);
  CHECK(epoch.step == 7);
  CHECK(epoch.loss == 2.5);
  CHECK(epoch.learning_rate == 0.2);
  CHECK_FALSE(epoch.validation_loss);
  course.begin_next_epoch();
  CHECK(course.place.epoch == 2);
  CHECK(course.place.epoch_steps == 0);
  CHECK(course.mean_loss() == 0);
  CHECK(course.record.steps == 7);
}

TEST_CASE("progress counts all steps, speed those of this run") {
  const TrainStepRecord step{.epoch = 1, .step = 7, .learning_rate = 0.2, .memory = 1 << 30};
  const Progress progress =
      describe_progress({.epochs = 3, .steps_per_epoch = 10, .max_steps = {}}, make_course(), step, 4, 2.0);
  CHECK(progress.stage == "training");
  CHECK(progress.message == "epoch 1 of 3, step 2 of 10, loss 2.5000, rate 0.2, 4 samples/s, " + format_bytes(1 << 30));
  CHECK(progress.fraction == doctest::Approx(7.0 / 30));
  CHECK(progress.seconds_left == doctest::Approx(23));
}

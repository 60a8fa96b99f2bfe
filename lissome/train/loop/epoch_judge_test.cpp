// The verdict on an epoch, and the metrics of a training without validation data.
#include "lissome/train/loop/epoch_judge.h"

#include <doctest/doctest.h>

#include "lissome/train/loop/learn/make_schedule.h"
#include "lissome/train/loop/test_line.h"
#include "lissome/train/loop/training_metrics.h"

using namespace lissome;

namespace {

// A learner of the line that has learned nothing yet.
struct UntrainedLine {
  Dataset data = make_line();
  Program program = make_line_model();
  TrainOptions options = make_line_options();
  Learner learner{make_training_model(program, program, data, &data, options), data, options};
  Schedule schedule = make_schedule(options, {.epochs = 1, .steps_per_epoch = 6, .max_steps = {}});
};

}  // namespace

TEST_CASE("an epoch is judged by validation data if there are any, else by its training loss") {
  UntrainedLine line;
  line.options.early_stop = EarlyStopOptions{.patience = 1};
  const WorkControl control;
  EpochJudge by_data(line.learner, &line.data, line.options, control);
  EpochRecord epoch{.epoch = 1, .loss = 9};
  CHECK(by_data.judge(epoch, line.schedule, 7) == EpochVerdict::go_on);
  REQUIRE(epoch.validation_loss);
  CHECK(by_data.results().early_stop()->best() == *epoch.validation_loss);
  CHECK(epoch.validation_metrics.at(0).first == "mean_absolute_error");
  CHECK(by_data.judge(epoch, line.schedule, 7) == EpochVerdict::stop_early);  // nothing became better
  EpochJudge by_loss(line.learner, nullptr, line.options, control);
  EpochRecord other{.epoch = 1, .loss = 9};
  CHECK(by_loss.judge(other, line.schedule, 7) == EpochVerdict::go_on);
  CHECK_FALSE(other.validation_loss);
  CHECK(by_loss.results().early_stop()->best() == 9.0);
}

TEST_CASE("an epoch whose validation was interrupted is not judged") {
  UntrainedLine line;
  line.options.early_stop = EarlyStopOptions{};
  WorkControl control;
  control.should_stop = [] { return true; };
  EpochJudge judge(line.learner, &line.data, line.options, control);
  EpochRecord epoch{.epoch = 1, .loss = 9};
  CHECK(judge.judge(epoch, line.schedule, 7) == EpochVerdict::interrupted);
  CHECK_FALSE(epoch.validation_loss);
  CHECK_FALSE(judge.results().early_stop()->best());
}

TEST_CASE("training samples are measured in a part of the training time, and not inside a memory budget") {
  UntrainedLine line;
  const auto measure = [&](int64_t trained) {
    return measure_training(line.learner.model(), line.data, trained, 7, line.options, {});
  };
  CHECK(measure(100).notice.find(" on 10 of the training samples") != std::string::npos);
  CHECK(measure(10).notice.find(" on 7 of the training samples") != std::string::npos);
  CHECK(measure(100'000).notice.find(" on 40 of the training samples") != std::string::npos);
  CHECK(measure(100).metrics.at(0).first == "mean_absolute_error");
  line.options.memory = 1 << 30;
  CHECK(measure(100).notice.empty());
  CHECK(measure(100).metrics.empty());
}

TEST_CASE("accuracy is printed in percent, other metrics as numbers") {
  CHECK(describe_training_metrics({{"accuracy", 0.5}, {"worst", 0.25}}, 8) ==
        "accuracy 50.00 %, worst 0.25 on 8 of the training samples; use --validation to measure on other samples");
}

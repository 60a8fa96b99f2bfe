// One optimizer step of a small model, the batches that it sees and the rates that it takes.
#include "lissome/train/loop/learn/learner.h"

#include <doctest/doctest.h>

#include <limits>

#include "lissome/train/loop/learn/batch_feed.h"
#include "lissome/train/loop/learn/make_schedule.h"
#include "lissome/train/loop/test_line.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

const NoticeLog::Listener kNobody;

struct LearnedLine {
  explicit LearnedLine(const TrainOptions& asked, const std::string& range = "1..64")
      : options(asked),
        program(make_line_model(range)),
        learner(make_training_model(program, program, data, nullptr, options), data, options) {}
  std::vector<at::Tensor> take(int64_t count) const { return take_inputs(data, 0, count, 2); }

  Dataset data = make_line();
  TrainOptions options;
  Program program;
  Learner learner;
};

TrainOptions make_plain_options() {
  TrainOptions options = make_line_options();
  options.optimizer = Sgd{.lr = 0.2};
  options.clip_norm = 0;
  return options;
}

constexpr double kRate = 0.125;

}  // namespace

TEST_CASE("gradients are computed, then weights follow them") {
  LearnedLine line(make_plain_options());
  const std::optional<UpdatePart> part = line.learner.compute_gradients(line.take(7), {.rates = {.lr = kRate}}, {});
  REQUIRE(part);
  CHECK(part->loss > 0);
  CHECK(part->samples == 7);
  CHECK(read_one(line.program, "w") == 0.5F);
  CHECK(line.learner.seconds_in_gradients() == 0);
  const float gradient = line.learner.step().batch_step().gradients().at(0).flatten()[0].item().toFloat();
  const StepResult result = line.learner.update_weights({.lr = kRate}, "");
  CHECK_FALSE(result.skipped);
  CHECK(result.gradient_norm > 0);
  CHECK(read_one(line.program, "w") == doctest::Approx(0.5 - kRate * gradient));
  CHECK(line.learner.tensors().size() == 2);
}

TEST_CASE("updates inside the backward pass give the same weights") {
  TrainOptions options = make_plain_options();
  LearnedLine behind(options);
  options.update_in_backward = true;
  LearnedLine inside(options);
  for (LearnedLine* line : {&behind, &inside}) {
    REQUIRE(line->learner.compute_gradients(line->take(7), {.rates = {.lr = kRate}}, {}));
    CHECK((read_one(line->program, "w") != 0.5F) == (line == &inside));
    CHECK((line->learner.seconds_in_gradients() > 0) == (line == &inside));
    line->learner.update_weights({.lr = kRate}, "");
  }
  CHECK(read_one(inside.program, "w") == read_one(behind.program, "w"));
  CHECK(read_one(inside.program, "b") == read_one(behind.program, "b"));
}

TEST_CASE("a step that was stopped leaves everything as it was") {
  LearnedLine line(make_plain_options());
  WorkControl control;
  control.should_stop = [] { return true; };
  CHECK_FALSE(line.learner.compute_gradients(line.take(7), {.rates = {.lr = kRate}}, control));
  CHECK(read_one(line.program, "w") == 0.5F);
  CHECK(line.learner.compute_gradients(line.take(7), {.rates = {.lr = kRate}}, {}));
}

TEST_CASE("a loss or a weight that is not finite is refused with the last good state") {
  LearnedLine line(make_plain_options());
  const double infinity = std::numeric_limits<double>::infinity();
  line.learner.compute_gradients(line.take(7), {.rates = {.lr = kRate}}, {});
  line.learner.check_loss(1, 4, "");
  EXPECT_ERROR(invalid_input, line.learner.check_loss(infinity, 4, "Go back."), "the loss became inf at step 4",
               "no node of this batch alone", "Go back.");
  line.learner.check_weights(4, "");
  line.program.find_weight("b")->tensor.fill_(infinity);
  EXPECT_ERROR(invalid_input, line.learner.check_weights(4, "Go back."), "after step 4 the weight 'b'", "Go back.");
}

TEST_CASE("an update sees the batches that are accumulated, or as many samples as fit into memory") {
  TrainOptions options = make_plain_options();
  options.accumulate = 3;
  const auto choose = [](LearnedLine& line, NoticeLog& notices) {
    return choose_update_samples(line.learner.model(), line.learner.step().batch_step(), line.data, line.options,
                                 notices);
  };
  NoticeLog some(kNobody), none(kNobody), all(kNobody);
  LearnedLine summed(options);
  CHECK(choose(summed, some) == 21);
  REQUIRE(some.texts().size() == 1);
  CHECK(some.texts()[0].find("multiplied by --accumulate, 3") != std::string::npos);
  options.scale_learning_rate = false;
  LearnedLine fixed(options, "16");
  CHECK(choose(fixed, none) == 32);  // 8 of the 40 samples fill no batch
  CHECK(none.texts().empty());
  options.accumulate = 1, options.batch = 0;
  LearnedLine fitted(options);
  CHECK(choose(fitted, all) == kLineSamples);
  CHECK(all.texts().at(0).find("(all samples)") != std::string::npos);
}

TEST_CASE("a feed keeps the last batch") {
  LearnedLine line(make_plain_options());
  BatchFeed feed(line.learner.model(), line.data, 7, line.options);
  CHECK(feed.last().empty());
  CHECK(feed.batches().per_epoch() == 6);
  CHECK(feed.take(1, 5).front().size(0) == kLineSamples % 7);
  CHECK(feed.last().size() == 2);
  CHECK(feed.samples() == 7);
}

TEST_CASE("the rate is that of the options or the optimizer, times the batches of an update") {
  TrainOptions options = make_plain_options();
  options.accumulate = 4;
  const TrainLength length{.epochs = 1, .steps_per_epoch = 6, .max_steps = {}};
  const auto first_rate = [&] { return make_schedule(options, length).at(0).learning_rate; };
  CHECK(first_rate() == doctest::Approx(0.8));
  options.scale_learning_rate = false;
  CHECK(first_rate() == doctest::Approx(0.2));
  options.learning_rate = 0.1;
  CHECK(first_rate() == doctest::Approx(0.1));
}

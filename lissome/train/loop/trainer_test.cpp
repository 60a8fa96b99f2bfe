// The loop on small programs; against training in Python, tests/cli/test_train.py compares it.
#include "lissome/train/loop/trainer.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "lissome/train/loop/test_line.h"
#include "lissome/train/step/training_step.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

TEST_CASE("a line is found, the same one with the same seed, another way with another") {
  const Dataset data = make_line();
  TrainOptions options = make_line_options();
  const Trained trained = train(make_line_model(), data, &data, options);
  CHECK(read_one(trained.program, "w") == doctest::Approx(2).epsilon(0.01));
  CHECK(read_one(trained.program, "b") == doctest::Approx(1).epsilon(0.01));
  REQUIRE(trained.record.epochs.size() == 30);
  CHECK(trained.record.steps == 30 * 6);
  CHECK(*trained.record.epochs.back().validation_loss < 1e-3);
  CHECK(trained.record.epochs.back().validation_metrics.at(0).first == "mean_absolute_error");
  options.epochs = 1;
  const auto train_once = [&] { return read_one(train(make_line_model(), data, nullptr, options).program, "w"); };
  const float first = train_once();
  CHECK(train_once() == first);
  options.seed = 1;
  CHECK(train_once() != first);
}

TEST_CASE("batches may come from a source, beside the first samples of it") {
  const Dataset data = make_line();
  TrainOptions options = make_line_options();
  options.epochs = 3;
  const Trained wanted = train(make_line_model(), data, nullptr, options);
  Dataset first = data;
  first.rows.resize(7);
  options.batches.source = make_source(data);
  options.batches.workers = 2;
  const Trained seen = train(make_line_model(), first, nullptr, options);
  CHECK(seen.record.steps == wanted.record.steps);
  CHECK(read_one(seen.program, "w") == read_one(wanted.program, "w"));
  first.rows.resize(6);
  EXPECT_ERROR(invalid_input, train(make_line_model(), first, nullptr, options), "the first 6 samples",
               "at least a batch, 7");
}

TEST_CASE("early stopping gives back the best weights; interrupted, what is there is returned") {
  const Dataset data = make_line(), other = make_line(0.5);
  TrainOptions options = make_line_options();
  options.early_stop = EarlyStopOptions{.patience = 2};
  // Validated on another line, the start is best and everything after it worse.
  const Trained stopped = train(make_line_model(), data, &other, options);
  CHECK(stopped.record.stopped_early);
  CHECK(stopped.record.epochs.size() < 30);
  int64_t steps = 0;
  options = make_line_options();
  options.callbacks.on_step = [&](const TrainStepRecord&) { ++steps; };
  WorkControl control;
  control.should_stop = [&] { return steps >= 10; };
  const Trained interrupted = train(make_line_model(), data, nullptr, options, control);
  CHECK(interrupted.record.interrupted);
  CHECK(interrupted.record.steps == 10);
}

TEST_CASE("interrupted anywhere, inside a step or a validation, training goes on to the same bits") {
  const Dataset data = make_line();
  const auto make_dropout_model = [] {
    return parse_program(
        "dim n in 1..64\n"
        "input %x: f32[n, 1]\n"
        "parameter @w: f32[1, 1] = 0.5\n"
        "parameter @b: f32[1] = 0.0\n"
        "%y: f32[n, 1] = aten::linear(%x, @w, @b)\n"
        "%d: f32[n, 1] = aten::dropout(%y, 0.25, true)\n"
        "return %d\n");
  };
  TrainOptions options = make_line_options();
  options.epochs = 3, options.average_decay = 0.9;
  const Trained wanted = train(make_dropout_model(), data, &data, options);
  int64_t polls = 0;
  WorkControl count;
  count.should_stop = [&] { return ++polls < 0; };
  train(make_dropout_model(), data, &data, options, count);
  REQUIRE(polls > 2 * wanted.record.steps);  // some inside of steps
  int resumed = 0;
  for (int64_t stop_at = 1; stop_at <= polls; stop_at += 3) {
    const TemporaryFolder folder;
    options.snapshots = SnapshotOptions{.folder = folder.file("s"), .every_steps = 1000, .every_seconds = 0};
    options.resume.clear();
    int64_t polled = 0;
    WorkControl control;
    control.should_stop = [&] { return ++polled >= stop_at; };
    const Trained interrupted = train(make_dropout_model(), data, &data, options, control);
    REQUIRE(interrupted.record.interrupted);
    if (interrupted.record.steps == 0) continue;
    options.resume = options.snapshots->folder;
    const Trained whole = train(make_dropout_model(), data, &data, options);
    CHECK(read_one(whole.program, "w") == read_one(wanted.program, "w"));
    CHECK(read_one(whole.program, "b") == read_one(wanted.program, "b"));
    CHECK(whole.record.steps == wanted.record.steps);
    CHECK(whole.record.epochs.back().validation_loss == wanted.record.epochs.back().validation_loss);
    ++resumed;
  }
  CHECK(resumed >= 10);
}

TEST_CASE("tied parameters train as one") {
  const Program program = parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 2]\n"
      "parameter @a: f32[2, 2]\n"
      "parameter @b: f32[2, 2] tied @a\n"
      "%y: f32[n, 2] = aten::linear(%x, @a)\n"
      "%z: f32[n, 2] = aten::linear(%y, @b)\n"
      "%s: f32[] = aten::sum(%z)\n"
      "return %s\n");
  program.weights[0].tensor.fill_(0.5);
  TrainingStep step(program, {at::ones({3, 2})});
  CHECK(step.names() == std::vector<std::string>{"a"});
  step.run({at::ones({5, 2})});
  // s = sum over 5 rows of 1 A A 1: 5 * 8 * a^2, so 5 * 4 * a for each of the four elements that are all a.
  CHECK(at::allclose(step.gradients()[0], at::full({2, 2}, 5 * 4 * 0.5)));
}

TEST_CASE("a loss that is NaN is reported with the node that computed it") {
  const Program model = parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 1]\n"
      "parameter @w: f32[1, 1] = 0.5\n"
      "%h: f32[n, 1] = aten::linear(%x, @w)\n"
      "%y: f32[n, 1] = aten::log(%h)\n"
      "return %y\n");
  EXPECT_ERROR(invalid_input, train(model, make_line(), nullptr, make_line_options()), "step 1", "aten::log");
}

TEST_CASE("labels that no class has, and too few samples, are refused") {
  const Program model = parse_program(
      "input %x: f32[8, 1]\n"
      "parameter @w: f32[3, 1]\n"
      "%y: f32[8, 3] = aten::linear(%x, @w)\n"
      "return %y\n");
  NamedArray labels{"labels", make_array(Dtype::i64, {kLineSamples})};
  labels.array.data<int64_t>()[5] = 3;
  const Dataset data = make_dataset({{"x", make_line().columns[0].array}, labels}, {.labels = "labels"}, "some");
  TrainOptions options;
  EXPECT_ERROR(invalid_input, train(model, data, nullptr, options), "some: sample 5 has the label 3", "0 to 2");
  Dataset few = data;
  few.rows.resize(4);
  EXPECT_ERROR(invalid_input, train(model, few, nullptr, options), "4 samples fill no batch", "8");
}

TEST_CASE("callbacks see every step and epoch, hooks every gradient, and training ends at its last step") {
  const Dataset data = make_line();
  TrainOptions options = make_line_options();
  options.max_steps = 14;
  std::vector<TrainStepRecord> steps;
  std::vector<EpochRecord> epochs;
  options.callbacks.on_step = [&](const TrainStepRecord& step) { steps.push_back(step); };
  options.callbacks.on_epoch = [&](const EpochRecord& epoch) { epochs.push_back(epoch); };
  GradientHooks hooks;
  hooks.add("b", [](const std::string&, const at::Tensor& gradient) { return gradient.mul(0); });
  options.gradient_hooks = &hooks;
  options.metrics = {{"worst", [](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
                        return outputs[0].sub(labels).abs().max().item().toDouble();
                      }}};
  const Trained trained = train(make_line_model(), data, &data, options);
  REQUIRE(steps.size() == 14);
  REQUIRE(epochs.size() == 3);
  CHECK(steps[13].step == 14);
  CHECK(steps[13].epoch == 3);
  CHECK(steps[5].samples == 40 % 7);
  CHECK(steps[0].memory > 0);
  CHECK(steps[0].seconds_gradients > 0);
  CHECK(epochs[2].step == 14);
  CHECK(epochs[2].validation_metrics.at(1).first == "worst");
  CHECK(epochs[2].validation_metrics.at(1).second >= epochs[2].validation_metrics.at(0).second);
  CHECK(trained.record.history.points.size() == 14);
  CHECK(read_one(trained.program, "b") == 0);
  CHECK(read_one(trained.program, "w") != 0.5F);
}

TEST_CASE("averages of weights are validated and given back, frozen ones stay") {
  const Dataset data = make_line();
  TrainOptions options = make_line_options();
  options.epochs = 1;
  options.groups = {{.pattern = "b", .frozen = true}};
  std::vector<float> weights;
  const Program model = make_line_model();
  options.callbacks.on_step = [&](const TrainStepRecord&) { weights.push_back(read_one(model, "w")); };
  options.average_decay = 0.5;
  const Trained trained = train(model, data, &data, options);
  float average = 0.5;
  for (const float weight : weights) average = average * 0.5F + weight * 0.5F;
  CHECK(read_one(trained.program, "w") == doctest::Approx(average).epsilon(1e-6));
  CHECK(read_one(trained.program, "b") == 0);
  const double error = *trained.record.epochs[0].validation_loss;
  // Of x in steps of 1/20 from -1: the mean of ((w - 2) x - 1)^2.
  double wanted = 0;
  for (int i = 0; i < kLineSamples; ++i) {
    const double x = i / (kLineSamples / 2.0) - 1, miss = (average - 2) * x - 1;
    wanted += miss * miss / kLineSamples;
  }
  CHECK(error == doctest::Approx(wanted).epsilon(1e-5));
}

TEST_CASE("a loss of one's own trains") {
  const Dataset data = make_line();
  TrainOptions options = make_line_options();
  options.loss_function = [](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
    return outputs[0].sub(labels).square().mean();
  };
  const Trained own = train(make_line_model(), data, nullptr, options);
  CHECK(read_one(own.program, "w") == doctest::Approx(2).epsilon(0.01));
}

TEST_CASE("weights that the last step made infinite, which no loss shows, are refused and not saved") {
  const TemporaryFolder folder;
  TrainOptions options = make_line_options();
  options.optimizer = Sgd{.lr = 3e38};
  options.clip_norm = 0;
  options.max_steps = 1;
  EXPECT_ERROR(invalid_input, train(make_line_model(), make_line(), nullptr, options), "after step 1 the weight 'b'",
               "holds NaN or infinity", "No snapshot was saved");
  options.snapshots = SnapshotOptions{.folder = folder.file("s"), .every_steps = 1, .every_seconds = 0};
  EXPECT_ERROR(invalid_input, train(make_line_model(), make_line(), nullptr, options), "holds NaN or infinity");
  CHECK_FALSE(std::filesystem::exists(folder.file("s")));
}

TEST_CASE("when the loss becomes NaN or infinity, the last good snapshot is named and stays") {
  const TemporaryFolder folder;
  TrainOptions options = make_line_options();
  options.optimizer = Sgd{.lr = 1e15};
  options.clip_norm = 0;
  options.snapshots = SnapshotOptions{.folder = folder.file("s"), .every_steps = 1, .every_seconds = 0};
  EXPECT_ERROR(invalid_input, train(make_line_model(), make_line(), nullptr, options), "the loss became",
               "aten::", "The last good state is that of step", folder.file("s"));
  CHECK_FALSE(list_snapshots(folder.file("s")).empty());
}

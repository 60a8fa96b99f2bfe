// Weights that are kept in a file while a model trains: the same bits as in memory, and out of memory while nobody
// needs them.
#include "lissome/train/remat/offload_weights.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <filesystem>

#include "lissome/train/budget/try_budget.h"
#include "lissome/train/loop/early_stop.h"
#include "lissome/train/loop/trainer.h"
#include "lissome/train/optim/moving_average.h"
#include "lissome/train/remat/test_waves.h"
#include "lissome/train/rewrite/freeze.h"
#include "lissome/train/step/training_step.h"
#include "tests/expect_error.h"
#include "tests/file_limit.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

constexpr int64_t kSamples = 24, kWide = 1024, kLayers = 20;
constexpr int64_t kMatrix = kWide * kWide * 4;  // bytes
constexpr int64_t kMebibyte = 1 << 20;

// 80 MiB: layers whose first and last share a weight, with dropout and biases between them.
Program make_heavy() {
  std::string text = "dim n in 2..64\ntraining\ninput %x: f32[n, 1024]\n", x = "%x", body;
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string at = std::to_string(i);
    text += "parameter @w" + at + ": f32[1024, 1024]\nparameter @b" + at + ": f32[1024]\n";
    body += "%line" + at + ": f32[n, 1024] = aten::linear(" + x + ", @w" + at + ", @b" + at + ")\n";
    body += "%bent" + at + ": f32[n, 1024] = aten::tanh(%line" + at + ")\n";
    body += "%some" + at + ": f32[n, 1024] = aten::dropout(%bent" + at + ", 0.1, true)\n";
    x = "%some" + at;
  }
  text += "parameter @again: f32[1024, 1024] tied @w0\nparameter @head: f32[5, 1024]\n" + body;
  text += "%last: f32[n, 1024] = aten::linear(" + x + ", @again)\n";
  Program program = parse_program(text + "%scores: f32[n, 5] = aten::linear(%last, @head)\nreturn %scores\n");
  at::manual_seed(3);
  for (Weight& weight : program.weights) weight.tensor.uniform_(-0.03, 0.03);
  return program;
}

Dataset make_data() { return make_waves(kSamples, kWide); }

TrainOptions make_heavy_options(int64_t memory, const std::string& folder) {
  TrainOptions options;
  options.batch = 8, options.epochs = 1;
  options.memory = memory, options.offload = folder;
  return options;
}

// Bytes in which such a training has to have weights in a file.
int64_t find_tight_memory(const TrainOptions& options) {
  const Program program = freeze_parameters(attach_loss(make_heavy(), {}, Dtype::i64, {}), options.groups);
  return count_training_bytes(program, options, WeightPlace::memory).total() - 8 * kMebibyte;
}

bool tells_of_weights(const Trained& trained) {
  return std::any_of(trained.record.notes.begin(), trained.record.notes.end(), [](const std::string& note) {
    return note.find("of them in memory at once") != std::string::npos;
  });
}

void check_same_bits(const Trained& seen, const Trained& wanted) {
  REQUIRE(seen.program.weights.size() == wanted.program.weights.size());
  for (size_t i = 0; i < wanted.program.weights.size(); ++i) {
    CAPTURE(wanted.program.weights[i].name);
    CHECK(at::equal(seen.program.weights[i].tensor, wanted.program.weights[i].tensor));
    CHECK_FALSE(is_offloaded(seen.program.weights[i].tensor));
  }
}

}  // namespace

TEST_CASE("large parameters that train may be offloaded, each storage once, and nothing that others point into") {
  Program program = make_heavy();
  const OffloadableWeights all = find_offloadable_weights(program, false);
  CHECK(all.tensors.size() == kLayers);
  CHECK(all.bytes == kLayers * kMatrix);
  CHECK(all.in_step == 32 * kMebibyte);
  CHECK(all.at_once == all.in_step);
  CHECK(find_offloadable_weights(program, true).at_once == all.in_step + kMatrix);
  std::vector<float> numbers(static_cast<size_t>(kWide * kWide));
  for (Weight& weight : program.weights) {
    if (weight.name == "w3") weight.role = WeightRole::buffer;
    if (weight.name == "w4") weight.tensor = at::from_blob(numbers.data(), {kWide, kWide}, at::kFloat);
    if (weight.name == "w5") weight.tensor.storage().unsafeGetStorageImpl()->set_resizable(false);
    if (weight.name == "again") weight.role = WeightRole::buffer;
  }
  CHECK(find_offloadable_weights(program, false).bytes == (kLayers - 4) * kMatrix);
}

TEST_CASE("weights in a file are the same tensors, out of memory until they are touched, and come back") {
  const TemporaryFolder folder;
  const Program program = make_heavy();
  const at::Tensor weight = program.find_weight("w7")->tensor, part = weight.narrow(0, 5, 2), wanted = weight.clone();
  {
    OffloadedWeights weights;
    weights.move(find_offloadable_weights(program, false), folder.file("."));
    CHECK(weights.saved() == kLayers * kMatrix - 32 * kMebibyte);
    CHECK(weights.resident() == 0);
    CHECK(is_offloaded(weight));
    CHECK(is_offloaded(part));
    CHECK_FALSE(is_offloaded(program.find_weight("head")->tensor));
    CHECK(at::equal(weight, wanted));
    CHECK(weights.resident() >= kMatrix);
    part.fill_(2), wanted.narrow(0, 5, 2).fill_(2);
    weights.release();
    CHECK(weights.resident() == 0);
    CHECK(at::equal(weight, wanted));
    CHECK(std::filesystem::is_empty(folder.file(".")));
  }
  CHECK_FALSE(is_offloaded(weight));
  CHECK(at::equal(weight, wanted));
  CHECK(part.data_ptr<float>() == weight.data_ptr<float>() + 5 * kWide);
}

TEST_CASE("a folder that is missing or full is reported, and weights stay where they are") {
  const TemporaryFolder folder;
  const Program program = make_heavy();
  const at::Tensor& weight = program.find_weight("w7")->tensor;
  const void* before = weight.data_ptr();
  OffloadedWeights weights;
  EXPECT_ERROR(usage, weights.move(find_offloadable_weights(program, false), "no/folder"), "no/folder");
  {
    const FileLimit limit(8 * kMebibyte);
    EXPECT_ERROR(io, weights.move(find_offloadable_weights(program, false), folder.file(".")), "80.0 MiB",
                 "cannot be offloaded to", "File too large");
  }
  CHECK(weight.data_ptr() == before);
  weights.move(find_offloadable_weights(program, false), folder.file("."));
  CHECK(is_offloaded(weight));
}

TEST_CASE("a step and an update read weights from their file inside the limit, with the bits of memory") {
  const TemporaryFolder folder;
  const Program program = attach_loss(make_heavy(), {}, Dtype::i64, {});
  const std::vector<at::Tensor> batch = {at::randn({8, kWide}), at::randint(0, 5, {8}, at::kLong)};
  const OffloadableWeights offloaded = find_offloadable_weights(program, false);
  StepBudget budget{.recompute = KeepAll{}, .sizes = {{8, kWide}, {8}}};
  budget.offload_folder = folder.file("."), budget.weights = {offloaded.bytes, offloaded.in_step};
  OffloadedWeights weights;
  TrainingStep step(program, {batch[0].narrow(0, 0, 3), batch[1].narrow(0, 0, 3)},
                    {.threads = 2, .budget = budget, .outputs = false});
  CHECK(step.streams_weights());
  at::manual_seed(7);
  const at::Tensor loss = step.run(batch).at(0).clone();
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& gradient : step.gradients()) gradients.push_back(gradient.clone());
  weights.move(offloaded, folder.file("."));
  for (int run = 0; run < 2; ++run) {
    int64_t most = 0;
    const StepSink look = [&](const StepTiming&) { most = std::max(most, weights.resident()); };
    at::manual_seed(7);
    CHECK(at::equal(step.run(batch, &look).at(0), loss));
    for (size_t i = 0; i < gradients.size(); ++i) CHECK(at::equal(step.gradients()[i], gradients[i]));
    CHECK(most <= offloaded.at_once);
    CHECK(most >= 2 * kMatrix);
    CHECK(weights.resident() == 0);
  }
  std::vector<Parameter> parameters;
  for (const std::string& name : step.names()) parameters.push_back({name, program.find_weight(name)->tensor, {}});
  Optimizer optimizer(parameters, Sgd{}, {}, folder.file("."));
  const at::Tensor before = parameters[0].weight.clone();
  optimizer.step(step.gradients());
  CHECK(weights.resident() == 0);
  CHECK_FALSE(at::equal(parameters[0].weight, before));
}

TEST_CASE("a budget that weights in memory exceed is met with weights in a file, as predicted and measured") {
  const TemporaryFolder folder;
  TrainOptions options = make_heavy_options(0, folder.file("."));
  options.memory = find_tight_memory(options);
  const BudgetTrial trial = try_budget(make_heavy(), make_data(), options);
  CHECK(trial.fixed.offloaded == kLayers * kMatrix);
  CHECK(trial.fixed.offloaded_at_once == 32 * kMebibyte);
  CHECK(trial.all_predicted() <= options.memory);
  CHECK(trial.all_measured() <= options.memory);
  CHECK(trial.weights_measured > 2 * kMatrix);
  CHECK(trial.weights_measured <= trial.fixed.weights);
  CHECK(trial.keeping_all() > options.memory);
  options.memory = trial.fixed.total();
  EXPECT_ERROR(over_budget, try_budget(make_heavy(), make_data(), options), "before any activation",
               "weights of 80.0 MiB are kept in a file, at most 32.0 MiB of them in memory at once");
  options.offload.clear(), options.optimizer = Sgd{};
  options.memory = trial.all_predicted() + kMebibyte;
  EXPECT_ERROR(over_budget, try_budget(make_heavy(), make_data(), options), "before any activation");
}

TEST_CASE("trainings with weights in a file end with the bits of those in memory") {
  const TemporaryFolder folder;
  const auto check = [&](const auto& change) {
    TrainOptions options = make_heavy_options(0, folder.file("."));
    change(options);
    options.memory = find_tight_memory(options) + 2 * kMebibyte;  // so that the search for a schedule ends soon
    const Trained offloaded = train(make_heavy(), make_data(), nullptr, options);
    CHECK(tells_of_weights(offloaded));
    CHECK(offloaded.record.batch == 8);
    options.memory = 0, options.offload.clear();
    const Trained exact = train(make_heavy(), make_data(), nullptr, options);
    CHECK(offloaded.record.epochs.back().loss == exact.record.epochs.back().loss);
    check_same_bits(offloaded, exact);
  };
  check([](TrainOptions&) {});
  check([](TrainOptions& options) {
    options.update_in_backward = true, options.clip_norm = 0;
    options.optimizer = Sgd{.lr = 0.1};
  });
  check([](TrainOptions& options) {
    options.precision = Dtype::bf16;
    options.groups = {{.pattern = "w3", .frozen = true}};
  });
}

TEST_CASE("a training with weights in a file is resumed, with validation, to the bits of one in memory") {
  const TemporaryFolder folder;
  const Dataset data = make_data();
  TrainOptions options = make_heavy_options(0, folder.file("."));
  options.memory = find_tight_memory(options) + 2 * kMebibyte;
  options.snapshots = SnapshotOptions{.folder = folder.file("run"), .every_steps = 2};
  CHECK(tells_of_weights(train(make_heavy(), data, &data, options)));
  options.resume = folder.file("run"), options.epochs = 2;
  const Trained resumed = train(make_heavy(), data, &data, options);
  CHECK(tells_of_weights(resumed));
  options.memory = 0, options.offload.clear(), options.resume.clear(), options.snapshots.reset();
  const Trained exact = train(make_heavy(), data, &data, options);
  check_same_bits(resumed, exact);
  CHECK(resumed.record.epochs.back().validation_loss == exact.record.epochs.back().validation_loss);
}

TEST_CASE("averages and the best weights are made of weights in a file one by one") {
  const TemporaryFolder folder;
  const Program program = make_heavy();
  const at::Tensor weight = program.find_weight("w7")->tensor, first = weight.clone();
  OffloadedWeights weights;
  weights.move(find_offloadable_weights(program, false), folder.file("."));
  MovingAverage average({weight}, 0.5);
  EarlyStop stop({weight});
  CHECK(stop.observe(1));
  CHECK(weights.resident() == 0);
  weight.zero_();
  average.update();
  CHECK(weights.resident() == 0);
  average.swap();
  CHECK(weights.resident() == 0);
  CHECK(at::equal(weight, first.mul(0.5)));
  stop.restore_best();
  CHECK(weights.resident() == 0);
  CHECK(at::equal(weight, first));
}

TEST_CASE("a training that fails leaves its weights in memory") {
  const TemporaryFolder folder;
  TrainOptions options = make_heavy_options(0, folder.file("."));
  options.memory = find_tight_memory(options) + 2 * kMebibyte;
  const Program model = make_heavy();
  options.callbacks.on_step = [](const TrainStepRecord& step) {
    if (step.step == 2) throw_error(ErrorKind::internal, "enough");
  };
  EXPECT_ERROR(internal, train(model, make_data(), nullptr, options), "enough");
  for (const Weight& weight : model.weights) CHECK_FALSE(is_offloaded(weight.tensor));
  options.memory = 0, options.offload.clear(), options.callbacks = {}, options.max_steps = 2;
  const Trained exact = train(make_heavy(), make_data(), nullptr, options);
  CHECK(at::equal(model.find_weight("w5")->tensor, exact.program.find_weight("w5")->tensor));
}

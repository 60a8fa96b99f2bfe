// Activations that are kept in bf16: which are stored, what they save, and how near the gradients stay.
#include "lissome/train/remat/store_lossy.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include "lissome/footprint.h"
#include "lissome/train/remat/check_lossy.h"
#include "lissome/train/remat/test_tower.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

TrainOptions make_lossy_options(int64_t memory) {
  TrainOptions options;
  options.batch = kBatch, options.epochs = 3;
  options.memory = memory, options.recompute = RecomputeToFit{}, options.lossy_activations = true;
  return options;
}

// Less than a step that keeps what enters each block: no measured time decides what that is.
TrainOptions make_tight_options() {
  TrainOptions options = make_lossy_options(int64_t{1} << 30);
  options.recompute = RecomputeEvery{1};
  const BudgetTrial plain = try_budget(make_tower(), make_tower_data(), options);
  CHECK(plain.predicted.stored_lossy == 0);
  options.memory = plain.beside() + plain.predicted.chosen.total() * 8 / 10;
  return options;
}

}  // namespace

TEST_CASE("activations in bf16 take half of their bytes, and gradients stay near") {
  const Program program = attach_loss(make_tower(), {}, Dtype::i64, {});
  const std::vector<at::Tensor> examples = {at::randn({3, kWidth}), at::randint(0, 5, {3}, at::kLong)};
  TrainingStep step(program, examples);
  at::manual_seed(7);
  const std::vector<at::Tensor> batch = {at::randn({kBatch, kWidth}), at::randint(0, 5, {kBatch}, at::kLong)};
  const at::Tensor loss = step.run(batch).at(0).clone();
  std::vector<at::Tensor> exact;
  for (const at::Tensor& gradient : step.gradients()) exact.push_back(gradient.clone());
  auto [plan, sizes, views] = list_step_inputs(step, program, batch);
  const int64_t before = find_footprint(plan, sizes, 2).arena_bytes;
  const Spills stored = store_in_bf16(plan, sizes, 2, before * 3 / 4);
  CHECK(stored.values > 0);
  CHECK(find_footprint(plan, sizes, 2).arena_bytes <= before * 3 / 4);
  Session session(std::make_shared<Plan>(plan), {.threads = 2});
  const std::vector<Array> outputs = session.run(views);
  CHECK(*outputs[0].data<float>() == loss.item<float>());
  int changed = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const Array& seen = outputs[outputs.size() - exact.size() + i];
    const at::Tensor gradient = at::from_blob(seen.storage.get(), seen.sizes, at::kFloat);
    const double error = gradient.sub(exact[i]).norm().item<double>() / exact[i].norm().item<double>();
    CHECK(error < 0.01);
    changed += error > 0 ? 1 : 0;
  }
  CHECK(changed > 0);
  Plan same = step.session().plan();
  CHECK(store_in_bf16(same, sizes, 2, before).values == 0);
  CHECK(same.steps.size() == step.session().plan().steps.size());
}

TEST_CASE("a budget that exact activations cannot meet is met with some in bf16, as predicted, while gradients agree") {
  TrainOptions options = make_tight_options();
  options.lossy_activations = false;
  EXPECT_ERROR(over_budget, try_budget(make_tower(), make_tower_data(), options), "at the least found");
  options.lossy_activations = true;
  const BudgetTrial trial = try_budget(make_tower(), make_tower_data(), options);
  CHECK(trial.predicted.stored_lossy > 0);
  CHECK(trial.beside() + trial.predicted.chosen.total() <= options.memory);
  CHECK(trial.measured.arena == trial.predicted.chosen.arena);
  options.memory += kRoom;
  const Trained lossy = train(make_tower(), make_tower_data(), nullptr, options);
  const auto count_notes = [&](const char* words) {
    return std::count_if(lossy.record.notes.begin(), lossy.record.notes.end(),
                         [&](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  CHECK(count_notes("within the limit of 2 %") == 1);
  CHECK(count_notes("activations are kept in bf16") == 1);
  CHECK(lossy.record.peak_memory <= options.memory);
  options.memory = 0, options.recompute = KeepAll{}, options.lossy_activations = false;
  const Trained exact = train(make_tower(), make_tower_data(), nullptr, options);
  CHECK(lossy.record.epochs.back().loss == doctest::Approx(exact.record.epochs.back().loss).epsilon(0.01));
}

TEST_CASE("a search that may store in bf16 takes what it predicted") {
  TrainOptions options = make_tight_options();
  options.recompute = RecomputeToFit{};
  const BudgetTrial trial = try_budget(make_tower(), make_tower_data(), options);
  CHECK(trial.beside() + trial.predicted.chosen.total() <= options.memory);
  CHECK(trial.measured.arena == trial.predicted.chosen.arena);
}

TEST_CASE("where gradients suffer, activations are kept exactly, and that is said") {
  const TrainOptions options = make_tight_options();
  const LossyCheck check = check_lossy(make_tower(), make_tower_data(), nullptr, options, 1e-6);
  CHECK_FALSE(check.allowed);
  CHECK_MESSAGE(
      check.report.find("beyond the limit of 0.0001 %: all activations are kept exactly") != std::string::npos,
      check.report);
}

TEST_CASE("lossy storage is for a budget") {
  TrainOptions options = make_lossy_options(0);
  EXPECT_ERROR(usage, train(make_tower(), make_tower_data(), nullptr, options), "give --memory");
  options.memory = int64_t{1} << 30, options.recompute = KeepAll{};
  EXPECT_ERROR(usage, train(make_tower(), make_tower_data(), nullptr, options), "--recompute auto");
  options.recompute = RecomputeToFit{};
  const Trained trained = train(make_tower(), make_tower_data(), nullptr, options);
  CHECK(std::any_of(trained.record.notes.begin(), trained.record.notes.end(), [](const std::string& note) {
    return note.find("no activations are stored") != std::string::npos;
  }));
}

// Activations that are kept in a file: the same bits as in memory, in the memory that was predicted.
#include "lissome/train/remat/store_in_file.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <map>

#include "lissome/footprint.h"
#include "lissome/runtime/step/move/offload_steps.h"
#include "lissome/train/budget/transfer_rate.h"
#include "lissome/train/remat/test_tower.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

TrainOptions make_options(int64_t memory, const std::string& folder) {
  TrainOptions options;
  options.batch = kBatch, options.epochs = 3;
  options.memory = memory, options.recompute = RecomputeToFit{}, options.offload = folder;
  return options;
}

bool tells_of_a_file(const Trained& trained) {
  return std::any_of(trained.record.notes.begin(), trained.record.notes.end(), [](const std::string& note) {
    return note.find("are kept in a file for the backward pass") != std::string::npos;
  });
}

// Every ticket is given once, behind the last touch of what it stands for, and read once, later.
void check_tickets(const Plan& plan) {
  std::map<PlanValueId, size_t> given, taken;  // by ticket: the step
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (is_step<OffloadStep>(step)) CHECK(given.emplace(step.results.at(0), i).second);
    if (is_step<ReloadStep>(step)) CHECK(taken.emplace(step.operands.at(0), i).second);
  }
  REQUIRE(given.size() == taken.size());
  for (const auto& [ticket, at] : given) {
    CHECK(at + 1 < taken.at(ticket));
    const PlanValueId value = plan.steps[at].operands.at(0);
    for (size_t i = at + 1; i < plan.steps.size(); ++i) {
      const std::vector<PlanValueId>& operands = plan.steps[i].operands;
      CHECK(std::find(operands.begin(), operands.end(), value) == operands.end());
    }
  }
}

}  // namespace

TEST_CASE("activations in a file take no arena, and gradients keep their bits") {
  const TemporaryFolder folder;
  const Program program = attach_loss(make_tower(), {}, Dtype::i64, {});
  const std::vector<at::Tensor> examples = {at::randn({3, kWidth}), at::randint(0, 5, {3}, at::kLong)};
  TrainingStep step(program, examples);
  const std::vector<at::Tensor> batch = {at::randn({kBatch, kWidth}), at::randint(0, 5, {kBatch}, at::kLong)};
  const at::Tensor loss = step.run(batch).at(0).clone();
  auto [plan, sizes, views] = list_step_inputs(step, program, batch);
  const int64_t before = find_footprint(plan, sizes, 2).arena_bytes;
  const Spills sent = store_in_file(plan, sizes, 2, before / 2);
  CHECK(sent.values > 0);
  CHECK(sent.bytes >= before / 2 - (1 << 20));
  const int64_t after = find_footprint(plan, sizes, 2).arena_bytes;
  CHECK(after <= before / 2);
  check_tickets(plan);
  EXPECT_ERROR(invalid_input, Session(std::make_shared<Plan>(plan), {.threads = 2}), "no folder");
  Session session(std::make_shared<Plan>(plan), {.threads = 2, .offload_folder = folder.file(".")});
  for (int run = 0; run < 2; ++run) {
    const std::vector<Array> outputs = session.run(views);
    CHECK(*outputs[0].data<float>() == loss.item<float>());
    for (size_t i = 0; i < step.gradients().size(); ++i) {
      const Array& seen = outputs[outputs.size() - step.gradients().size() + i];
      CHECK(at::equal(at::from_blob(seen.storage.get(), seen.sizes, at::kFloat), step.gradients()[i]));
    }
  }
  CHECK(session.memory().arena >= after);
  CHECK(session.memory().arena <= after + 4096);
  Plan same = step.session().plan();
  CHECK(store_in_file(same, sizes, 2, before).values == 0);
  CHECK(same.steps.size() == step.session().plan().steps.size());
}

TEST_CASE("a budget that nothing kept in memory meets is met with activations in a file, as predicted, bit by bit") {
  const TemporaryFolder folder;
  TrainOptions options = make_options(int64_t{1} << 30, {});
  options.recompute = KeepAll{};
  const BudgetTrial plain = try_budget(make_tower(), make_tower_data(), options);
  CHECK(plain.predicted.offloaded == 0);
  options.memory = plain.beside() + plain.predicted.chosen.total() * 6 / 10;
  EXPECT_ERROR(over_budget, try_budget(make_tower(), make_tower_data(), options), "at the least found");
  options.offload = folder.file(".");
  const BudgetTrial trial = try_budget(make_tower(), make_tower_data(), options);
  CHECK(trial.predicted.offloaded > 0);
  CHECK(trial.predicted.offloaded_bytes >= trial.predicted.offloaded * int64_t{1 << 20});
  CHECK(trial.predicted.recomputed_nodes == 0);
  CHECK(trial.predicted.method.find("offloaded activations") != std::string::npos);
  CHECK(trial.beside() + trial.predicted.chosen.total() <= options.memory);
  CHECK(trial.measured.arena == trial.predicted.chosen.arena);
  CHECK(trial.fixed.states == 0);
  options.memory += kRoom;
  const Trained offloaded = train(make_tower(), make_tower_data(), nullptr, options);
  CHECK(tells_of_a_file(offloaded));
  options.memory = 0, options.offload.clear();
  const Trained exact = train(make_tower(), make_tower_data(), nullptr, options);
  CHECK(offloaded.record.epochs.back().loss == exact.record.epochs.back().loss);
  for (size_t i = 0; i < exact.program.weights.size(); ++i)
    CHECK(at::equal(offloaded.program.weights[i].tensor, exact.program.weights[i].tensor));
}

TEST_CASE("activations of other dtypes are kept in a file too, and beside gradients that leave early") {
  const TemporaryFolder folder;
  const auto check = [&](const auto& change) {
    TrainOptions options = make_options(int64_t{1} << 30, folder.file("."));
    options.recompute = KeepAll{}, options.epochs = 1;
    change(options);
    const BudgetTrial plain = try_budget(make_tower(), make_tower_data(), options);
    options.memory = plain.beside() + plain.predicted.chosen.total() * 7 / 10 + kRoom;
    const Trained offloaded = train(make_tower(), make_tower_data(), nullptr, options);
    CHECK(offloaded.record.batch == kBatch);
    CHECK(tells_of_a_file(offloaded));
    options.memory = 0, options.offload.clear();
    const Trained exact = train(make_tower(), make_tower_data(), nullptr, options);
    for (size_t i = 0; i < exact.program.weights.size(); ++i)
      CHECK(at::equal(offloaded.program.weights[i].tensor, exact.program.weights[i].tensor));
  };
  check([](TrainOptions& options) { options.update_in_backward = true, options.clip_norm = 0; });
  check([](TrainOptions& options) { options.precision = Dtype::bf16; });
}

TEST_CASE("a search that may offload takes what it predicted, and offloads nothing that fits") {
  const TemporaryFolder folder;
  const BudgetTrial plain =
      try_budget(make_tower(), make_tower_data(), make_options(int64_t{1} << 30, folder.file(".")));
  CHECK(plain.predicted.offloaded == 0);
  CHECK(plain.predicted.recomputed_nodes == 0);
  const int64_t memory = plain.beside() + plain.predicted.chosen.total() / 2;
  const BudgetTrial trial = try_budget(make_tower(), make_tower_data(), make_options(memory, folder.file(".")));
  CHECK(trial.beside() + trial.predicted.chosen.total() <= memory);
  CHECK(trial.measured.arena == trial.predicted.chosen.arena);
}

TEST_CASE("a folder that cannot be written to is reported before anything else") {
  EXPECT_ERROR(usage, try_budget(make_tower(), make_tower_data(), make_options(1 << 30, "no/folder")), "no/folder");
  EXPECT_ERROR(usage, train(make_tower(), make_tower_data(), nullptr, make_options(1 << 30, "no/folder")), "no/folder");
  EXPECT_ERROR(usage, measure_folder("no/folder"), "no/folder");
}

TEST_CASE("a step takes its work and the copies, and at least the time of the disk") {
  const FolderRates rates{.cache = 4e9, .disk = 1e9};
  CHECK(rates.predict(2, 1'000'000'000) == doctest::Approx(2.25));
  CHECK(rates.predict(2, 4'000'000'000) == doctest::Approx(4));
  const TemporaryFolder folder;
  const FolderRates measured = measure_folder(folder.file("."));
  CHECK(measured.disk > 0);
  CHECK(measured.cache > 0);
}

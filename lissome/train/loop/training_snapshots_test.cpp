// A training saves its state, and names the last state that was good.
#include "lissome/train/loop/training_snapshots.h"

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

TEST_CASE("snapshots are due and saved once a folder is open, and name the precision of the step") {
  const TemporaryFolder folder;
  const at::Tensor weight = at::full({2}, 1.0, at::kFloat);
  Optimizer optimizer({{"w", weight, {}}}, Sgd{});
  Schedule schedule(0.1, {{0, ConstantRate{}}});
  TrainingPlace place{.epoch = 2};
  TrainRecord record;
  record.steps = 4;
  const TrainingState state{
      .tensors = {{"w", weight}}, .optimizer = optimizer, .schedule = schedule, .place = place, .record = record};
  TrainingSnapshots snapshots({{"precision", "f32"}, {"seed", "1"}});
  CHECK_FALSE(snapshots.is_due(4));
  CHECK(snapshots.name_good_state().find("No snapshot was saved") != std::string::npos);
  snapshots.open({.folder = folder.file("s"), .every_steps = 2, .every_seconds = 0});
  CHECK_FALSE(snapshots.is_due(3));
  CHECK(snapshots.is_due(4));
  CHECK(snapshots.name_good_state().find("No snapshot was saved") != std::string::npos);
  CHECK_FALSE(snapshots.save(state, {}, Dtype::bf16));
  CHECK(snapshots.name_good_state().find("that of step 4 in") != std::string::npos);
  const FoundSnapshot found = find_snapshot(folder.file("s"));
  CHECK(found.snapshot.facts == TrainingFacts{{"precision", "bf16"}, {"seed", "1"}});
  CHECK(found.snapshot.require_count("place/epoch") == 2);
}

TEST_CASE("a place that the record contradicts is refused, and nothing changes") {
  const at::Tensor weight = at::full({2}, 1.0, at::kFloat);
  Optimizer optimizer({{"w", weight, {}}}, Sgd{});
  Schedule schedule(0.1, {{0, ConstantRate{}}});
  TrainingPlace place;
  TrainRecord record;
  record.steps = 4;
  const TrainingState state{
      .tensors = {{"w", weight}}, .optimizer = optimizer, .schedule = schedule, .place = place, .record = record};
  const auto restore_from = [&](int64_t epoch, int64_t epoch_steps) {
    place = {.epoch = epoch, .epoch_steps = epoch_steps, .samples = 2 * epoch_steps};
    const Snapshot snapshot = make_snapshot(state, {});
    place = {};
    restore_snapshot(snapshot, state);
    return place.epoch_steps;
  };
  CHECK(restore_from(1, 4) == 4);
  EXPECT_ERROR(invalid_input, restore_from(int64_t{1} << 50, 4),
               "after the 0 finished epochs of its record it must be 1");
  EXPECT_ERROR(invalid_input, restore_from(1, 5), "its record 4 in all");
  CHECK(place.epoch == 1);
}

TEST_CASE("a generator's state and numbers that no training has are refused") {
  const at::Tensor weight = at::full({2}, 1.0, at::kFloat);
  Optimizer optimizer({{"w", weight, {}}}, Sgd{.momentum = 0.5});
  Schedule schedule(0.1, {{0, ConstantRate{}}});
  TrainingPlace place;
  TrainRecord record;
  const TrainingState state{
      .tensors = {{"w", weight}}, .optimizer = optimizer, .schedule = schedule, .place = place, .record = record};
  optimizer.step({at::full({2}, 0.5, at::kFloat)}, {.lr = 0.1});
  for (const int draws : {0, 1, 623, 624, 625, 1000}) {  // every state that the generator reaches is taken
    at::manual_seed(3);
    if (draws > 0) at::rand({draws});
    CHECK_NOTHROW(restore_snapshot(make_snapshot(state, {}), state));
  }
  const Snapshot sound = make_snapshot(state, {});
  const auto change = [&](const std::string& name, auto number, int64_t byte) {
    Snapshot broken = sound;
    for (auto& [entry, tensor] : broken.entries) {
      if (entry != name) continue;
      tensor = tensor.clone();
      std::memcpy(static_cast<char*>(tensor.mutable_data_ptr()) + byte, &number, sizeof number);
    }
    return broken;
  };
  const auto left_and_next = [&](int32_t left, uint64_t next) {
    Snapshot broken = change("generator", left, 8);
    for (auto& [entry, tensor] : broken.entries)
      if (entry == "generator") std::memcpy(static_cast<char*>(tensor.mutable_data_ptr()) + 16, &next, sizeof next);
    return broken;
  };
  for (const auto& [left, next] : {std::pair<int32_t, uint64_t>{624, 624},
                                   {0, 1},
                                   {-1, 626},
                                   {625, 0},
                                   {2, 0},
                                   {617, 9},
                                   {617, (uint64_t{1} << 32) + 8}})
    EXPECT_ERROR(invalid_input, restore_snapshot(left_and_next(left, next), state), "no state of a random generator");
  CHECK_NOTHROW(restore_snapshot(left_and_next(617, 8), state));
  EXPECT_ERROR(invalid_input, restore_snapshot(change("generator", int32_t{0x7fffff02}, 12), state), "'generator'");
  EXPECT_ERROR(invalid_input, restore_snapshot(change("generator", uint64_t{1} << 32, 24 + 8 * 100), state),
               "'generator'");
  EXPECT_ERROR(invalid_input, restore_snapshot(change("generator", uint8_t{2}, 5052), state), "'generator'");
  EXPECT_ERROR(invalid_input, restore_snapshot(change("schedule/learning_rate", -1.0, 0), state), "from 0 on");
  for (const char* name : {"place/losses", "place/seconds", "place/learning_rate"})
    EXPECT_ERROR(invalid_input, restore_snapshot(change(name, std::nan(""), 0), state), name, "is nan");
  for (const int64_t steps : {int64_t{-1}, INT64_MAX})
    EXPECT_ERROR(invalid_input, restore_snapshot(change("optimizer/w/step", steps, 0), state), "not a count of steps");
  EXPECT_ERROR(invalid_input, restore_snapshot(change("place/samples", int64_t{9}, 0), state), "9 samples in 0 steps");
}

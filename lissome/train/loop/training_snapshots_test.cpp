// A training saves its state, and names the last state that was good.
#include "lissome/train/loop/training_snapshots.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>

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
  CHECK_FALSE(snapshots.save(state, Dtype::bf16));
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
    place = {.epoch = epoch, .epoch_steps = epoch_steps};
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

// Snapshots: what is written comes back bit for bit, and nothing that is damaged is taken.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "lissome/train/loop/snapshot_folder.h"
#include "tests/expect_error.h"
#include "tests/temporary_folder.h"

using namespace lissome;

namespace {

Snapshot make_some(int64_t step) {
  Snapshot snapshot;
  snapshot.facts = {{"batch", "32"}, {"seed", "1"}};
  snapshot.add("weight/a", at::arange(12, at::TensorOptions().dtype(at::kFloat)).reshape({3, 4}));
  snapshot.add("weight/empty", at::zeros({0, 3}));
  snapshot.add_section("optimizer", {{"a/step", at::zeros({}, at::TensorOptions().dtype(at::kLong))}});
  snapshot.add_count("place/step", step);
  snapshot.add_numbers("numbers", {0.1, -0.0, std::numeric_limits<double>::infinity(), std::nan("")});
  return snapshot;
}

}  // namespace

TEST_CASE("entries and facts come back as they were") {
  const TemporaryFolder folder;
  save_snapshot(folder.file("a"), make_some(7));
  const Snapshot read = load_snapshot(folder.file("a"));
  CHECK(read.facts == make_some(7).facts);
  CHECK(at::equal(read.require("weight/a"), make_some(7).require("weight/a")));
  CHECK(read.require("weight/empty").sizes() == at::IntArrayRef{0, 3});
  CHECK(read.require_count("place/step") == 7);
  CHECK(read.read_section("optimizer").at(0).first == "a/step");
  const std::vector<double> numbers = read.require_numbers("numbers");
  CHECK(numbers[0] == 0.1);
  CHECK(std::signbit(numbers[1]));
  CHECK(std::isinf(numbers[2]));
  CHECK(std::isnan(numbers[3]));
  EXPECT_ERROR(invalid_input, read.require("weight/b"), "lacks 'weight/b'");
  EXPECT_ERROR(invalid_input, read.require_like("weight/a", at::zeros({4, 3})), "f32[3, 4]", "f32[4, 3]");
  EXPECT_ERROR(invalid_input, read.require_count("weight/a"), "not a count");
}

TEST_CASE("a byte changed anywhere, or a file cut short, is refused") {
  const TemporaryFolder folder;
  save_snapshot(folder.file("a"), make_some(7));
  const std::string bytes = folder.read("a");
  size_t taken = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    folder.write("b", changed);
    try {
      const Snapshot read = load_snapshot(folder.file("b"));
      // Dates and padding say nothing: then all is as it was.
      CHECK(at::equal(read.require("weight/a"), make_some(7).require("weight/a")));
      CHECK(read.require_count("place/step") == 7);
      ++taken;
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::invalid_input);
    }
  }
  CHECK(taken < bytes.size() / 2);
  for (size_t size = 0; size < bytes.size(); size += 37) {
    folder.write("b", bytes.substr(0, size));
    EXPECT_ERROR(invalid_input, load_snapshot(folder.file("b")), "b");
  }
}

TEST_CASE("the newest undamaged snapshot is found, damaged ones are reported, others are refused") {
  const TemporaryFolder folder;
  SnapshotFolder snapshots({.folder = folder.file("s"), .every_steps = 5, .every_seconds = 0, .keep = 2});
  CHECK(find_snapshot(folder.file("s")).path.empty());
  CHECK_FALSE(snapshots.is_due(4));
  CHECK(snapshots.is_due(15));
  for (const int64_t step : {5, 10, 15}) snapshots.save(step, make_some(step));
  CHECK(list_snapshots(folder.file("s")).size() == 2);
  const FoundSnapshot last = find_snapshot(folder.file("s"));
  CHECK(last.snapshot.require_count("place/step") == 15);
  refuse_other_training(last, make_some(0).facts);
  EXPECT_ERROR(invalid_input, refuse_other_training(last, {{"batch", "16"}, {"seed", "1"}}), "another training",
               "batch '32' there, '16' here");
  EXPECT_ERROR(usage, refuse_used_folder(folder.file("s")), "unfinished training", "step-000000000015", "--resume");
  refuse_used_folder(folder.file("other"));

  const std::string newest = "s/" + list_snapshots(folder.file("s")).back().substr(folder.file("s/").size());
  folder.write(newest, folder.read(newest).substr(10));
  const FoundSnapshot found = find_snapshot(folder.file("s"));
  CHECK(found.snapshot.require_count("place/step") == 10);
  CHECK(found.damaged.size() == 1);
  // Going on from step 10, the damaged one of step 15 crowds out no good one.
  SnapshotFolder resumed({.folder = folder.file("s"), .every_steps = 1, .every_seconds = 0, .keep = 1});
  resumed.save(11, make_some(11));
  CHECK(find_snapshot(folder.file("s")).snapshot.require_count("place/step") == 11);
  folder.write("s/.lissome-999999999-0.tmp", "half");
  SnapshotFolder({.folder = folder.file("s")});
  remove_snapshots(folder.file("s"));
  CHECK(folder.list().empty());
}

TEST_CASE("options that make no sense, and places where nothing can be written") {
  const TemporaryFolder folder;
  {
    const SnapshotFolder unused({.folder = folder.file("s")});
  }
  CHECK(folder.list().empty());
  EXPECT_ERROR(invalid_input, SnapshotFolder({.folder = folder.file("s"), .every_seconds = 0}), "0 steps");
  EXPECT_ERROR(invalid_input, SnapshotFolder({.folder = folder.file("s"), .keep = 0}), "0 kept");
  EXPECT_ERROR(usage, SnapshotFolder({.folder = folder.file("no/s")}), "no/s");
  EXPECT_ERROR(usage, list_snapshots(folder.file("s")), "no folder");
}

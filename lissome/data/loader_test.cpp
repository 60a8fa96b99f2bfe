#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "lissome/data/data_test_files.h"
#include "lissome/loader.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

// Sample i is [i, i * i]; its label is i. Some samples may be broken, and some take long.
class Squares : public BatchSource {
 public:
  explicit Squares(int64_t samples) : samples_(samples) {}
  int64_t samples() const override { return samples_; }
  void take(std::span<const int64_t> samples, Batch& batch) const override {
    ++calls;
    const auto count = static_cast<int64_t>(samples.size());
    auto* inputs = reuse_input(batch, 0, "x", Dtype::f32, {count, 2}).data<float>();
    if (!batch.labels) batch.labels.emplace();
    auto* labels = reuse_array(*batch.labels, Dtype::i64, {count}).data<int64_t>();
    for (const int64_t sample : samples) {
      if (sample == broken) throw std::runtime_error("disk on fire");
      if (sample % 3 == 1) std::this_thread::sleep_for(std::chrono::microseconds(delay));
      *inputs++ = sample == not_finite ? NAN : static_cast<float>(sample);
      *inputs++ = static_cast<float>(sample * sample);
      *labels++ = sample;
    }
  }

  int64_t broken = -1, not_finite = -1, delay = 0;
  mutable std::atomic<int64_t> calls = 0;

 private:
  int64_t samples_;
};

// The labels of all batches that are left of the epoch, each batch closed by -1.
std::vector<int64_t> read_epoch(Loader& loader) {
  std::vector<int64_t> seen;
  Batch batch;
  while (loader.next(batch)) {
    const std::vector<int64_t> labels = values_of<int64_t>(*batch.labels);
    CHECK(labels == batch.samples);
    for (size_t i = 0; i < labels.size(); ++i)
      CHECK(batch.inputs[0].array.data<float>()[2 * i + 1] == static_cast<float>(labels[i] * labels[i]));
    seen.insert(seen.end(), labels.begin(), labels.end());
    seen.push_back(-1);
  }
  return seen;
}

}  // namespace

TEST_CASE("what a loader gives does not depend on its workers, over several epochs") {
  const auto source = std::make_shared<Squares>(50);
  source->delay = 200;
  Loader reference(source, {.batch = 8, .seed = 3});
  std::vector<std::vector<int64_t>> expected;
  for (int epoch = 0; epoch < 3; ++epoch) expected.push_back(read_epoch(reference));
  CHECK(expected[0] != expected[1]);
  CHECK(expected[0].size() == 50 + 7);
  for (const auto& [workers, prefetch] : {std::pair(1, 1), std::pair(1, 4), std::pair(3, 1), std::pair(4, 2)}) {
    Loader loader(source, {.batch = 8, .seed = 3}, {}, {.workers = workers, .prefetch = prefetch});
    for (const auto& epoch : expected) CHECK(read_epoch(loader) == epoch);
    CHECK(loader.position().epoch == 3);
    CHECK(loader.statistics().batches == 21);
    CHECK(loader.statistics().samples == 150);
  }
}

TEST_CASE("a resumed epoch sees exactly the samples that are left, and then the next epoch") {
  const auto source = std::make_shared<Squares>(50);
  for (const int workers : {0, 3}) {
    Loader whole(source, {.batch = 8, .seed = 9}, {}, {.workers = workers});
    const std::vector<int64_t> first = read_epoch(whole), second = read_epoch(whole);
    for (int64_t stop = 0; stop <= 7; ++stop) {
      Loader before(source, {.batch = 8, .seed = 9}, {}, {.workers = workers});
      Batch batch;
      std::vector<int64_t> seen;
      for (int64_t i = 0; i < stop; ++i) {
        REQUIRE(before.next(batch));
        seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
        seen.push_back(-1);
      }
      Loader after(source, {.batch = 8, .seed = 9}, {}, {.workers = workers});
      after.restore(before.position());
      const std::vector<int64_t> rest = read_epoch(after);
      seen.insert(seen.end(), rest.begin(), rest.end());
      CHECK(seen == first);
      CHECK(read_epoch(after) == second);
      after.restore({0, 0});
      CHECK(read_epoch(after) == first);
    }
    EXPECT_ERROR(usage, whole.restore({0, 8}), "batch 8", "0 to 6");
    EXPECT_ERROR(usage, whole.restore({-1, 0}), "epoch -1");
  }
}

TEST_CASE("changing the workers on the way loses no batch and repeats none") {
  const auto source = std::make_shared<Squares>(60);
  Loader whole(source, {.batch = 4});
  const std::vector<int64_t> expected = read_epoch(whole);
  Loader loader(source, {.batch = 4});
  std::vector<int64_t> seen;
  Batch batch;
  for (int i = 0; loader.next(batch); ++i) {
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
    seen.push_back(-1);
    if (i % 2 == 0) loader.set_workers(i % 5, 1 + i % 3);
  }
  CHECK(seen == expected);
}

TEST_CASE("a bad sample is named, and loading stands still there") {
  const auto source = std::make_shared<Squares>(20);
  for (const int workers : {0, 2}) {
    for (const bool broken : {true, false}) {
      source->broken = broken ? 13 : -1;
      source->not_finite = broken ? -1 : 13;
      Loader loader(source, {.order = SequentialOrder{}, .batch = 4}, {}, {.workers = workers});
      Batch batch;
      for (int i = 0; i < 3; ++i) REQUIRE(loader.next(batch));
      EXPECT_ERROR(invalid_input, loader.next(batch), "sample 13", broken ? "disk on fire" : "nan");
      EXPECT_ERROR(invalid_input, loader.next(batch), "sample 13");
      CHECK(loader.position().batch == 3);
      loader.restore({0, 4});
      REQUIRE(loader.next(batch));
      CHECK(batch.samples == std::vector<int64_t>{16, 17, 18, 19});
    }
  }
}

TEST_CASE("bad samples are left out, counted and named where that is wanted") {
  const auto source = std::make_shared<Squares>(20);
  source->broken = 13;
  source->not_finite = 2;
  for (const int workers : {0, 3}) {
    Loader loader(source, {.order = SequentialOrder{}, .batch = 4}, {},
                  {.workers = workers, .bad_samples = BadSamples::skip});
    const std::vector<int64_t> seen = read_epoch(loader);
    CHECK(seen ==
          std::vector<int64_t>{0, 1, 3, -1, 4, 5, 6, 7, -1, 8, 9, 10, 11, -1, 12, 14, 15, -1, 16, 17, 18, 19, -1});
    CHECK(read_epoch(loader) == seen);
    const LoaderStatistics statistics = loader.statistics();
    CHECK(statistics.skipped == 4);
    REQUIRE(statistics.bad_samples.size() == 2);
    CHECK(statistics.bad_samples[0].sample == 2);
    CHECK(statistics.bad_samples[0].reason.find("nan") != std::string::npos);
    CHECK(statistics.bad_samples[1].sample == 13);
    CHECK(statistics.bad_samples[1].reason == "sample 13: disk on fire");
  }
}

TEST_CASE("a batch without any good sample is passed over, an epoch without any is an error") {
  const auto source = std::make_shared<Squares>(2);
  source->broken = 0;
  for (const int workers : {0, 1}) {
    const LoaderOptions options{.workers = workers, .bad_samples = BadSamples::skip};
    Loader loader(source, {.order = SequentialOrder{}, .batch = 1}, {}, options);
    CHECK(read_epoch(loader) == std::vector<int64_t>{1, -1});
    Loader hopeless(source, {.order = SequentialOrder{}, .subset = std::vector<int64_t>{0}, .batch = 1}, {}, options);
    Batch batch;
    EXPECT_ERROR(invalid_input, hopeless.next(batch), "no sample of epoch 0", "disk on fire");
  }
}

TEST_CASE("values that are no numbers pass where nobody asks") {
  const auto source = std::make_shared<Squares>(4);
  source->not_finite = 1;
  Loader loader(source, {.order = SequentialOrder{}, .batch = 4}, {}, {.check_finite = false});
  Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(std::isnan(batch.inputs[0].array.data<float>()[2]));
}

TEST_CASE("batches go round in the same memory, but never in memory that somebody holds") {
  const auto source = std::make_shared<Squares>(400);
  for (const int workers : {0, 2}) {
    Loader loader(source, {.order = SequentialOrder{}, .batch = 4}, {}, {.workers = workers, .prefetch = 1});
    std::set<const void*> places;
    Batch batch;
    std::vector<Array> held;
    for (int i = 0; i < 90; ++i) {
      REQUIRE(loader.next(batch));
      if (i < 20) places.insert(batch.inputs[0].array.storage.get());
      if (i >= 80) held.push_back(batch.inputs[0].array);
    }
    CHECK(places.size() <= static_cast<size_t>(workers + 2));
    for (size_t i = 0; i < held.size(); ++i) CHECK(held[i].data<float>()[0] == static_cast<float>(4 * (80 + i)));
  }
}

TEST_CASE("a cache asks the source once for what fits") {
  const auto source = std::make_shared<Squares>(40);
  Loader plain(source, {.batch = 8});
  std::vector<std::vector<int64_t>> expected;
  for (int epoch = 0; epoch < 3; ++epoch) expected.push_back(read_epoch(plain));
  for (const int workers : {0, 3}) {
    source->calls = 0;
    Loader all(source, {.batch = 8}, {}, {.workers = workers, .prefetch = 1, .cache_bytes = 1 << 20});
    for (const auto& epoch : expected) CHECK(read_epoch(all) == epoch);
    // Workers may ask for the samples of the second epoch before the first epoch's are kept, never later.
    CHECK(source->calls <= (workers == 0 ? 5 : 8));
    Loader few(source, {.batch = 8}, {}, {.workers = workers, .cache_bytes = 2000});
    for (const auto& epoch : expected) CHECK(read_epoch(few) == epoch);
  }
  EXPECT_ERROR(usage, Loader(source, {}, {}, {.cache_bytes = -1}), "-1 bytes");
}

TEST_CASE("time that next() waited is counted") {
  const auto source = std::make_shared<Squares>(30);
  source->delay = 5000;
  Loader loader(source, {.order = SequentialOrder{}, .batch = 3});
  read_epoch(loader);
  CHECK(loader.statistics().stall_seconds > 10 * 0.005);
  CHECK(loader.statistics().load_seconds > 10 * 0.005);
  loader.reset_statistics();
  CHECK(loader.statistics().batches == 0);
}

TEST_CASE("a dataset is a source; its rows are those of the file") {
  const Array x = make_values<float>(Dtype::f32, {4, 2}, {0, 0, 1, 1, 2, 4, 3, 9});
  const Array y = make_values<int64_t>(Dtype::i64, {4}, {0, 1, 2, 3});
  Dataset dataset = make_dataset({{"x", x}, {"y", y}}, {.labels = "y"}, "memory");
  dataset.rows = {3, 1, 2};
  Loader loader(make_source(dataset), {.order = SequentialOrder{}, .batch = 2});
  Batch batch;
  REQUIRE(loader.next(batch));
  CHECK(values_of<float>(batch.inputs[0].array) == std::vector<float>{3, 9, 1, 1});
  CHECK(values_of<int64_t>(*batch.labels) == std::vector<int64_t>{3, 1});
  CHECK(batch.samples == std::vector<int64_t>{0, 1});
  dataset.columns[0].array = copy_array(dataset.columns[0].array.view());
  dataset.columns[0].array.data<float>()[4] = INFINITY;
  Loader bad(make_source(dataset), {.order = SequentialOrder{}, .batch = 3});
  EXPECT_ERROR(invalid_input, bad.next(batch), "'memory', sample 2", "'x'", "inf", "element 0");
}

namespace {

// Forgets the last sample of each batch of several.
class Forgetful : public BatchSource {
 public:
  int64_t samples() const override { return 6; }
  void take(std::span<const int64_t> samples, Batch& batch) const override {
    const auto count = std::max<int64_t>(1, static_cast<int64_t>(samples.size()) - 1);
    reuse_input(batch, 0, "x", Dtype::f32, {count, 2});
  }
};

}  // namespace

TEST_CASE("a source that gives another number of samples is refused with the sizes") {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<Forgetful>(), {.order = SequentialOrder{}, .batch = 3}, {}, {.workers = workers});
    Batch batch;
    EXPECT_ERROR(invalid_input, loader.next(batch), "a batch of 3 samples", "input 'x'", "[2, 2]");
  }
}

TEST_CASE("loaders that cannot be are refused") {
  const auto source = std::make_shared<Squares>(4);
  EXPECT_ERROR(usage, Loader(source, {}, {}, {.workers = -1}), "-1 workers");
  EXPECT_ERROR(usage, Loader(source, {}, {}, {.prefetch = 0}), "0 batches");
  EXPECT_ERROR(invalid_input, Loader(std::make_shared<Squares>(0), {}), "no samples");
}

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "lissome/data/data_test_files.h"
#include "lissome/loader.h"

using namespace lissome;

namespace {

// A disk that takes its time, whoever asks.
class SlowSource : public BatchSource {
 public:
  explicit SlowSource(std::chrono::microseconds delay) : delay_(delay) {}
  int64_t samples() const override { return 100; }
  void take(std::span<const int64_t> samples, Batch& batch) const override {
    std::this_thread::sleep_for(delay_);
    const auto count = static_cast<int64_t>(samples.size());
    auto* values = reuse_input(batch, 0, "x", Dtype::i64, {count}).data<int64_t>();
    std::copy(samples.begin(), samples.end(), values);
  }

 private:
  std::chrono::microseconds delay_;
};

void sleep_for_a_step(Batch&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

}  // namespace

TEST_CASE("waiting for a disk is shared among workers, and no batch is lost while that is found out") {
  const auto source = std::make_shared<SlowSource>(std::chrono::milliseconds(20));
  Loader loader(source, {.order = SequentialOrder{}, .batch = 10});
  std::vector<int64_t> seen;
  const auto step = [&](Batch& batch) {
    seen.insert(seen.end(), batch.samples.begin(), batch.samples.end());
    sleep_for_a_step(batch);
  };
  const LoaderTuning tuning = tune_loader(loader, step, {.most_workers = 4});
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == static_cast<int64_t>(i) % 100);
  CHECK(tuning.workers == 4);
  CHECK(loader.options().workers == tuning.workers);
  CHECK(loader.options().prefetch == tuning.prefetch);
  CHECK(tuning.trials.size() >= 3);
  CHECK(tuning.trials[0].workers == 0);
  CHECK(tuning.trials[0].seconds > 0.0219);
  CHECK(tuning.trials[0].stall_seconds > 0.0199);
  CHECK(tuning.summary.find("by 4 workers, ") != std::string::npos);
  CHECK(tuning.summary.find(" times as fast as in the training loop; ") != std::string::npos);
}

TEST_CASE("where loading costs next to nothing it stays in the training loop") {
  const Array x = make_array(Dtype::f32, {64, 4});
  Loader loader(make_source(make_dataset({{"x", x}}, {}, "memory")), {.batch = 4}, {}, {.workers = 3});
  // Long enough that a thread which is held up for a moment does not look like loading.
  const LoaderTuning tuning =
      tune_loader(loader, [](Batch&) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  CHECK(tuning.workers == 0);
  CHECK(tuning.trials.size() == 1);
  CHECK(loader.options().workers == 0);
}

TEST_CASE("workers that looked faster only at first are given up") {
  Loader loader(std::make_shared<SlowSource>(std::chrono::milliseconds(8)), {.order = SequentialOrder{}, .batch = 10});
  LoaderTuner tuner(loader, {.most_workers = 2});
  Batch batch;
  while (!tuner.done()) {
    if (!loader.next(batch)) continue;
    // Once both workers were found to be worth it, they hold up the steps.
    const bool held_up = loader.options().workers == 2 && tuner.result().workers == 2;
    std::this_thread::sleep_for(std::chrono::milliseconds(held_up ? 12 : 2));
    tuner.observe();
  }
  CHECK(tuner.result().workers == 1);
  CHECK(loader.options().workers == 1);
  CHECK(std::ranges::any_of(tuner.result().trials, [](const LoaderTrial& trial) { return trial.workers == 2; }));
}

TEST_CASE("what lies between epochs is not counted, and time runs out") {
  const auto source = std::make_shared<SlowSource>(std::chrono::milliseconds(1));
  Loader loader(source, {.batch = 50});
  LoaderTuner tuner(loader, {.seconds = 0.3});
  Batch batch;
  while (!tuner.done()) {
    while (loader.next(batch)) tuner.observe();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (const LoaderTrial& trial : tuner.result().trials) CHECK(trial.seconds < 0.02);
  CHECK(tuner.result().workers == loader.options().workers);
}

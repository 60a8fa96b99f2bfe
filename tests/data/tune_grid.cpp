// The grid is timed in some rounds, and its best setting taken; that one is then timed against the automatic one in
// further rounds, in pairs, because the best of many noisy figures is too good to compare with.
#include "tests/data/tune_grid.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "lissome/loader.h"
#include "lissome/measure.h"

namespace lissome {
namespace {

constexpr int kGridRounds = 3, kSteps = 96;
// Pairs are timed until the interval lies on one side of what is asked for, or this often.
constexpr int kLeastPairs = 9, kMostPairs = 60;
constexpr double kAskedRatio = 0.95;

// Eight milliseconds for each batch, whoever asks: a disk or a network.
class SlowStorage : public BatchSource {
 public:
  int64_t samples() const override { return 4096; }
  void take(std::span<const int64_t> samples, Batch& batch) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
    const auto count = static_cast<int64_t>(samples.size());
    auto* values = reuse_input(batch, 0, "x", Dtype::i64, {count}).data<int64_t>();
    std::copy(samples.begin(), samples.end(), values);
  }
};

struct Workload {
  std::unique_ptr<Loader> loader;
  double step_seconds = 0;  // of computing, besides loading
  bool busy = false;        // computing takes a processor, or waits for a device
};

Workload make_workload(const std::string& name) {
  if (name == "storage") return {std::make_unique<Loader>(std::make_shared<SlowStorage>(), SamplerOptions{}), 0.002};
  if (name != "transform") throw_error(ErrorKind::usage, quote(name), " is no workload; storage and transform are.");
  Array images = make_array(Dtype::u8, {256, 3, 96, 96});
  for (int64_t i = 0; i < images.elements(); ++i)
    images.data<uint8_t>()[i] = static_cast<uint8_t>(i * 2654435761U >> 13);
  const char* text = "rotate:10,resize:80x80,random_apply:0.5(flip),to_float,normalize";
  return {std::make_unique<Loader>(make_source(make_dataset({{"images", images}}, {}, "memory")),
                                   SamplerOptions{.batch = 8}, TransformPipeline(parse_transforms(text))),
          0.002, true};
}

void compute(const Workload& workload) {
  if (!workload.busy) return std::this_thread::sleep_for(std::chrono::duration<double>(workload.step_seconds));
  // A fixed amount of processor time: who loads meanwhile takes it from nobody else's clock.
  timespec start{}, now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while (static_cast<double>(now.tv_sec - start.tv_sec) + static_cast<double>(now.tv_nsec - start.tv_nsec) * 1e-9 <
         workload.step_seconds);
}

void run_steps(const Workload& workload, int steps) {
  static Batch batch;
  while (steps > 0) {
    if (!workload.loader->next(batch)) continue;
    compute(workload);
    --steps;
  }
}

struct Setting {
  int workers = 0, prefetch = 0;
};

// Seconds a step, once the queue has had the time to fill: before that, loading ahead looks like work for nothing.
double time_setting(const Workload& workload, const Setting& setting) {
  workload.loader->set_workers(setting.workers, setting.prefetch);
  run_steps(workload, setting.workers * (setting.prefetch + 1) + 1);
  const Stopwatch watch;
  run_steps(workload, kSteps);
  return watch.seconds() / kSteps;
}

Setting find_best(const Workload& workload) {
  std::vector<Setting> grid = {{0, 1}};  // without workers, nothing is ahead
  for (const int workers : {1, 2, 4})
    for (const int prefetch : {1, 2, 4, 8}) grid.push_back({workers, prefetch});
  std::vector<std::vector<double>> seconds(grid.size());
  for (int round = 0; round < kGridRounds; ++round)
    for (size_t i = 0; i < grid.size(); ++i) seconds[i].push_back(time_setting(workload, grid[i]));
  size_t best = 0;
  for (size_t i = 0; i < grid.size(); ++i) {
    const double median = summarize(seconds[i]).median;
    std::printf("%d workers, prefetch %d: %.1f steps/s\n", grid[i].workers, grid[i].prefetch, 1 / median);
    if (median < summarize(seconds[best]).median) best = i;
  }
  return grid[best];
}

}  // namespace

bool run_tune_grid(const std::string& name) {
  const Workload workload = make_workload(name);
  const Stopwatch watch;
  const LoaderTuning tuning = tune_loader(*workload.loader, [&](Batch&) { compute(workload); });
  std::printf("%s (%.1f s)\n", tuning.summary.c_str(), watch.seconds());
  const Setting best = find_best(workload), automatic{tuning.workers, tuning.prefetch};
  std::vector<double> best_seconds, automatic_seconds;
  Ratio ratio;
  for (int pair = 0; pair < kMostPairs; ++pair) {
    if (pair % 2 == 0) best_seconds.push_back(time_setting(workload, best));
    automatic_seconds.push_back(time_setting(workload, automatic));
    if (pair % 2 != 0) best_seconds.push_back(time_setting(workload, best));
    ratio = estimate_ratio(best_seconds, automatic_seconds);
    if (pair + 1 >= kLeastPairs && (ratio.interval.low >= kAskedRatio || ratio.interval.high < kAskedRatio)) break;
  }
  std::printf("best of the grid: %d workers, prefetch %d: %.1f steps/s\n", best.workers, best.prefetch,
              1 / summarize(best_seconds).median);
  std::printf("automatic: %d workers, prefetch %d: %.1f steps/s\n", automatic.workers, automatic.prefetch,
              1 / summarize(automatic_seconds).median);
  std::printf("automatic over best: %.3f [%.3f, %.3f] from %zu pairs\n", ratio.median, ratio.interval.low,
              ratio.interval.high, best_seconds.size());
  return ratio.interval.high >= kAskedRatio;
}

}  // namespace lissome

#include "lissome/tune/goals.h"

#include <ATen/core/ivalue.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "lissome/base.h"
#include "lissome/tune/advice.h"
#include "lissome/tune/calibration.h"

namespace lissome {
namespace {

constexpr int64_t kMostTogether = 256;  // samples of a call that is tried for throughput
constexpr int kMostCalls = 50, kOpened = 3;
constexpr double kMostSeconds = 4, kShare = 0.05;  // for throughput: of the search, and at most

// Samples a second in calls of so many; the inputs are rows of the data again and again.
double measure_rate(Variant& best, const std::vector<NamedArray>& inputs, int64_t samples, double seconds) {
  std::vector<TensorView> views;
  for (const NamedArray& input : inputs) views.push_back(input.array.view());
  InterleaveOptions options;
  options.warmup = 1;
  options.rounds = kMostCalls;
  options.least_rounds = 1;
  options.seconds = seconds;
  const Interleaved timing = compare_interleaved({{"calls", [&] { best.session->run(views); }}}, options);
  return static_cast<double>(samples) / timing.summaries.front().median;
}

// Larger calls as long as they give more, and the next fits into the time.
void measure_throughput(OptimizationRecord& record, Variant& best, const Bench& bench, double seconds,
                        const WorkControl& control) {
  const BatchRange range = describe_call(*best.program).batch();
  const Stopwatch watch;
  int64_t last = 0;
  for (int64_t wanted = std::max<int64_t>(record.batch, 1); wanted <= kMostTogether; wanted *= 2) {
    const int64_t samples = range.nearest(wanted);
    const double left = seconds - watch.seconds();
    const double expected = record.samples_per_second ? static_cast<double>(samples) / *record.samples_per_second : 0;
    if (samples == last || control.stopped() || 3 * expected > left) break;
    last = samples;
    const std::vector<NamedArray> inputs = samples == record.batch ? bench.inputs : bench.take_samples(samples);
    const double rate = measure_rate(best, inputs, samples, left / 4);
    if (record.samples_per_second && rate <= *record.samples_per_second) break;
    record.samples_per_second = rate;
    record.throughput_batch = samples;
  }
}

// A folder of its own, removed with the file in it whatever happens.
class TemporaryModel {
 public:
  explicit TemporaryModel(const ModelFile& file) {
    std::string folder = std::filesystem::temp_directory_path() / "lissome-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr)
      throw_error(ErrorKind::io, "no folder can be made in ", std::filesystem::temp_directory_path().string());
    folder_ = folder;
    unfinished_folder_ = UnfinishedPath(folder_);
    unfinished_ = UnfinishedPath(path());
    save_model_file(path(), file);
  }
  ~TemporaryModel() {
    unlink(path().c_str());
    rmdir(folder_.c_str());
  }
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;

  std::string path() const { return folder_ + "/model.lissome"; }

 private:
  std::string folder_;
  UnfinishedPath unfinished_folder_, unfinished_;
};

double measure_first_answer(const Variant& best, const Bench& bench) {
  const TemporaryModel model(pack_prepared(*best.program, *best.plan, FileContents::plan));
  std::vector<double> seconds;
  for (int i = 0; i < kOpened; ++i) {
    const Stopwatch watch;
    Session::load(model.path(), {.threads = best.lowering.threads}).run(bench.views);
    seconds.push_back(watch.seconds());
  }
  return summarize(seconds).median;
}

}  // namespace

bool is_allowed_loss(double loss, double most) {
  constexpr double kRounding = 1e-9;
  return loss <= most + kRounding;
}

void measure_goals(OptimizationRecord& record, Variant& best, const Bench& bench, const OptimizeOptions& options,
                   const WorkControl& control) {
  if (options.goal.throughput)
    measure_throughput(record, best, bench, std::min(kMostSeconds, kShare * options.seconds), control);
  if (options.goal.first_answer) record.first_answer = measure_first_answer(best, bench);
}

void judge_goals(OptimizationRecord& record, const OptimizeOptions& options) {
  const auto add = [&](const char* name, const char* unit, double target, double measured, bool at_least = false) {
    const bool met = at_least ? measured >= target : measured <= target;
    record.goals.push_back({name, unit, target, measured, met, {}, at_least});
  };
  if (options.goal.latency) add("latency", "s", *options.goal.latency, record.seconds_final);
  if (options.goal.memory) {
    add("memory", "B", static_cast<double>(*options.goal.memory), static_cast<double>(record.memory_final));
  }
  if (options.goal.size && record.file_bytes > 0)
    add("size", "B", static_cast<double>(*options.goal.size), static_cast<double>(record.file_bytes));
  if (options.goal.throughput && record.samples_per_second)
    add("throughput", "/s", *options.goal.throughput, *record.samples_per_second, true);
  if (options.goal.first_answer && record.first_answer)
    add("first answer", "s", *options.goal.first_answer, *record.first_answer);
  if (record.quality_original && record.quality_final) {
    const bool higher = is_higher_better(parse_metric(record.metric));
    const double loss =
        higher ? *record.quality_original - *record.quality_final : *record.quality_final - *record.quality_original;
    const double rounded = is_allowed_loss(loss, options.goal.max_loss) ? std::min(loss, options.goal.max_loss) : loss;
    add("loss", "fraction", options.goal.max_loss, std::max(rounded, 0.0));
  }
  for (GoalRecord& goal : record.goals) {
    if (!goal.met) goal.advice = advise(goal, record);
  }
}

}  // namespace lissome

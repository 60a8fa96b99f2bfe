#include "lissome/train/loop/performance_monitor.h"

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr double kSlowFactor = 1.2;
constexpr double kStarvedShare = 0.5;        // share of a step's time that is spent on waiting for its batch
constexpr size_t kRisingWindows = 5;         // windows of growth in a row until it is reported
constexpr double kCreepingBytes = 16 << 20;  // smallest growth over those windows that is reported
constexpr double kLeastGrowthFactor = 1.05;  // smallest relative growth that is reported
constexpr size_t kSettlingWindows = 1;       // first windows, in which caches and pools fill

Summary summarize_steps(const std::deque<TrainStepRecord>& steps, const auto& number) {
  std::vector<double> numbers;
  for (const TrainStepRecord& step : steps) numbers.push_back(number(step));
  return summarize(numbers);
}

}  // namespace

PerformanceMonitor::PerformanceMonitor(const MonitorOptions& options) : options_(options) {
  if (options.window < 2)
    throw_error(ErrorKind::invalid_input, "the window of a performance monitor must have 2 steps or more, not ",
                options.window);
  if (options.target_step_seconds && !(*options.target_step_seconds > 0))
    throw_error(ErrorKind::invalid_input, "the target time of a step must be above 0 s, not ",
                *options.target_step_seconds);
}

Summary PerformanceMonitor::step_seconds() const {
  return summarize_steps(steps_, [](const TrainStepRecord& step) { return step.seconds(); });
}

Summary PerformanceMonitor::loss() const {
  return summarize_steps(steps_, [](const TrainStepRecord& step) { return step.loss; });
}

std::vector<std::string> PerformanceMonitor::observe(const TrainStepRecord& step) {
  steps_.push_back(step);
  if (static_cast<int64_t>(steps_.size()) > options_.window) steps_.pop_front();
  std::vector<std::string> notices;
  if (++seen_ % options_.window != 0) return notices;
  check_speed(notices);
  check_data(notices);
  check_memory(notices);
  return notices;
}

void PerformanceMonitor::check_speed(std::vector<std::string>& notices) {
  if (!options_.target_step_seconds) return;
  const Summary seconds = step_seconds();
  const bool slow = seconds.mean > kSlowFactor * *options_.target_step_seconds;
  if (slow && !slow_) {
    notices.push_back("a step takes " + format_duration(seconds.mean) + " (deviation " +
                      format_duration(seconds.deviation) + ", last " + std::to_string(steps_.size()) +
                      " steps), more than the target of " + format_duration(*options_.target_step_seconds));
  }
  slow_ = slow;
}

void PerformanceMonitor::check_data(std::vector<std::string>& notices) {
  double waited = 0, all = 0;
  for (const TrainStepRecord& step : steps_) waited += step.seconds_data, all += step.seconds();
  const bool starved = waited > kStarvedShare * all;
  if (starved && !starved_)
    notices.push_back("training waits for data: " + format_percent(waited / all) + " of the time of the last " +
                      std::to_string(steps_.size()) + " steps was spent on loading batches");
  starved_ = starved;
}

// Reports memory that grows from window to window, and by more than noise.
void PerformanceMonitor::check_memory(std::vector<std::string>& notices) {
  memory_.push_back(steps_.back().memory);
  if (memory_.size() < kSettlingWindows + kRisingWindows + 1) return;
  const size_t first = memory_.size() - kRisingWindows - 1;
  bool creeping =
      memory_.back() - memory_[first] > kCreepingBytes && memory_.back() > kLeastGrowthFactor * memory_[first];
  for (size_t i = first; i + 1 < memory_.size(); ++i) creeping = creeping && memory_[i + 1] > memory_[i];
  if (creeping && !creeping_) {
    notices.push_back("memory keeps growing: from " + format_bytes(static_cast<int64_t>(memory_[first])) + " to " +
                      format_bytes(static_cast<int64_t>(memory_.back())) + " over the last " +
                      std::to_string(static_cast<int64_t>(kRisingWindows) * options_.window) + " steps");
  }
  creeping_ = creeping;
}

}  // namespace lissome

// Watches the last steps of a training and says what a person would want to know: too slow, waiting for data, memory
// that creeps up. It changes nothing itself. Torch-free.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "lissome/measure.h"
#include "lissome/train/loop/train_record.h"

namespace lissome {

struct MonitorOptions {
  int64_t window = 100;                       // steps
  std::optional<double> target_step_seconds;  // slower than 1.2 times this on average is told
};

class PerformanceMonitor {
 public:
  // Throws invalid_input for a window below 2 or a target that is not above 0.
  explicit PerformanceMonitor(const MonitorOptions& options = {});

  // Returns what is to be told now, a sentence each. A condition is told once, and again when it went away in between.
  std::vector<std::string> observe(const TrainStepRecord& step);

  // Of the last steps, at most a window of them: mean, deviation, median, percentiles.
  Summary step_seconds() const;
  Summary loss() const;
  // Whether most of the last whole window went into waiting for batches.
  bool starved() const { return starved_; }
  // Whether the steps of the last whole window were slower than the target allows.
  bool slow() const { return slow_; }

 private:
  void check_speed(std::vector<std::string>& notices);
  void check_data(std::vector<std::string>& notices);
  void check_memory(std::vector<std::string>& notices);

  MonitorOptions options_;
  std::deque<TrainStepRecord> steps_;
  int64_t seen_ = 0;
  std::vector<double> memory_;  // at the end of each window
  bool slow_ = false, starved_ = false, creeping_ = false;
};

}  // namespace lissome

// Watches the last steps of a training and reports steps that are too slow, steps that wait for data, and memory that
// keeps growing. It changes nothing itself. Torch-free.
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
  std::optional<double> target_step_seconds;  // steps of more than 1.2 times this on average are reported
};

class PerformanceMonitor {
 public:
  // Throws invalid_input for a window below 2 or a target that is not above 0.
  explicit PerformanceMonitor(const MonitorOptions& options = {});

  // Returns new notices, a sentence each. A condition is reported once, and again only after it went away.
  std::vector<std::string> observe(const TrainStepRecord& step);

  // Mean, deviation, median and percentiles over the last steps, at most a window of them.
  Summary step_seconds() const;
  Summary loss() const;
  // Whether more than half of the time of the last full window was spent on waiting for batches.
  bool starved() const { return starved_; }
  // Whether the steps of the last full window were slower than the target allows.
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

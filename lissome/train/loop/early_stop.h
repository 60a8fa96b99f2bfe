// Ends training when a metric no longer improves, and restores the weights of its best value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lissome/train/budget/better.h"

namespace lissome {

struct EarlyStopOptions {
  int64_t patience = 7;  // training ends after so many metrics in a row without an improvement
  double min_delta = 0;  // smallest change that counts as an improvement
  Better better = Better::lower;
};

class EarlyStop {
 public:
  // `tensors`: weights and buffers. They are copied whenever the metric is the best so far.
  EarlyStop(std::vector<at::Tensor> tensors, const EarlyStopOptions& options = {});

  // Takes the metric of an epoch. Returns true if it is the best so far; NaN never is.
  bool observe(double metric);
  bool should_stop() const { return bad_metrics_ >= options_.patience; }
  std::optional<double> best() const { return best_; }
  // Restores the tensors of the best metric. Does nothing before the first metric.
  void restore_best();

  // For snapshots: copies of the best tensors, in the order of the tensors; empty before the first metric.
  const std::vector<at::Tensor>& kept() const { return kept_; }
  int64_t bad_metrics() const { return bad_metrics_; }
  void restore(std::optional<double> best, int64_t bad_metrics, std::vector<at::Tensor> kept);

 private:
  EarlyStopOptions options_;
  std::vector<at::Tensor> tensors_, kept_;
  std::optional<double> best_;
  int64_t bad_metrics_ = 0;
};

}  // namespace lissome

// Ends training when a metric no longer gets better, and gives back the weights of the best one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "lissome/train/budget/better.h"

namespace lissome {

struct EarlyStopOptions {
  int64_t patience = 7;  // so many metrics in a row without a better one end training
  double min_delta = 0;  // better means by more than this
  Better better = Better::lower;
};

class EarlyStop {
 public:
  // `tensors`: weights and buffers, copied at every best metric.
  EarlyStop(std::vector<at::Tensor> tensors, const EarlyStopOptions& options = {});

  // The metric of an epoch; true when it is the best so far. NaN is never better.
  bool observe(double metric);
  bool should_stop() const { return bad_metrics_ >= options_.patience; }
  std::optional<double> best() const { return best_; }
  // Writes the tensors of the best metric back; nothing before the first metric.
  void restore_best();

  // For snapshots. What it keeps: copies in the order of the tensors, empty before the first metric.
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

// See result_weights.h.
#include "lissome/train/loop/result_weights.h"

namespace lissome {

ResultWeights::ResultWeights(const std::vector<at::Tensor>& tensors, const std::optional<EarlyStopOptions>& early_stop,
                             const std::optional<double>& average_decay) {
  if (early_stop) early_stop_.emplace(tensors, *early_stop);
  if (average_decay) average_.emplace(tensors, *average_decay);
}

void ResultWeights::follow_update() {
  if (average_) average_->update();
}

void ResultWeights::swap_averages() {
  if (average_) average_->swap();
}

bool ResultWeights::observe(double metric) {
  if (!early_stop_) return false;
  swap_averages();
  early_stop_->observe(metric);
  swap_averages();
  return early_stop_->should_stop();
}

void ResultWeights::choose() {
  if (early_stop_) {
    early_stop_->restore_best();
  } else {
    swap_averages();
  }
}

}  // namespace lissome

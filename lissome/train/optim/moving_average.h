// An exponential moving average of weights, which often generalizes better than the last weights. The updates are those
// of get_ema_multi_avg_fn in torch.optim.swa_utils; the average begins with the weights before the first step, where
// AveragedModel begins with those after it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace lissome {

class MovingAverage {
 public:
  // Starts as a copy of `tensors`. Throws invalid_input unless decay is in 0..1.
  explicit MovingAverage(std::vector<at::Tensor> tensors, double decay = 0.999);

  // To be called after each optimizer step: average = decay * average + (1 - decay) * tensor. Integers (counters) are
  // copied.
  void update();
  // Exchanges averages and weights. Call it once to validate with the averages and once more to continue training.
  void swap();
  // The averages in the order of the tensors, for snapshots, which write into them.
  const std::vector<at::Tensor>& averages() const { return averages_; }

 private:
  std::vector<at::Tensor> tensors_, averages_;
  double decay_;
};

}  // namespace lissome

// The weights that a training returns: the last ones, their moving average, or those of the best metric.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "lissome/train/loop/early_stop.h"
#include "lissome/train/optim/moving_average.h"

namespace lissome {

class ResultWeights {
 public:
  // `tensors`: weights and buffers, changed in place. Throws the errors of EarlyStop and MovingAverage.
  ResultWeights(const std::vector<at::Tensor>& tensors, const std::optional<EarlyStopOptions>& early_stop,
                const std::optional<double>& average_decay);

  // To be called after each update that changed weights.
  void follow_update();
  // Exchanges the trained weights and their averages; does nothing without averages. To be called before the weights
  // are validated and once more after it.
  void swap_averages();
  // Takes the metric of an epoch; early stopping keeps the averages if there are any. Returns whether training should
  // stop.
  bool observe(double metric);
  // Gives the tensors the weights to return. To be called once, at the end of training.
  void choose();

  // The parts with a state of their own, for snapshots; null where the options name none.
  EarlyStop* early_stop() { return early_stop_ ? &*early_stop_ : nullptr; }
  MovingAverage* average() { return average_ ? &*average_ : nullptr; }

 private:
  std::optional<EarlyStop> early_stop_;
  std::optional<MovingAverage> average_;
};

}  // namespace lissome

// How long a training is. Schedules, progress and the loop itself go by it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace lissome {

struct TrainLength {
  int64_t epochs = 1;
  int64_t steps_per_epoch = 1;       // optimizer steps
  std::optional<int64_t> max_steps;  // ends training earlier

  // Optimizer steps of the whole training, unless it stops early.
  int64_t total_steps() const {
    const int64_t all = epochs * steps_per_epoch;
    return std::min(max_steps.value_or(all), all);
  }
  // Whether `steps` finished steps are as many as max_steps allows.
  bool reached_most(int64_t steps) const { return max_steps && steps >= *max_steps; }
};

}  // namespace lissome

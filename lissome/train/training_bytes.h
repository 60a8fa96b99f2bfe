// What training holds beside the values inside a step.
#pragma once

#include "lissome/program.h"
#include "lissome/train/optimizer.h"

namespace lissome {

struct TrainingBytes {
  int64_t weights = 0;    // and buffers, tied ones once
  int64_t gradients = 0;  // of floating parameters
  int64_t states = 0;     // of the optimizer

  int64_t total() const { return weights + gradients + states; }
};

// `offloaded` states lie in a file and count for nothing.
TrainingBytes count_training_bytes(const Program& program, const OptimizerOptions& optimizer, bool offloaded = false);

}  // namespace lissome

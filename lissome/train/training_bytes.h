// What training holds beside the values inside a step.
#pragma once

#include <cstdint>

#include "lissome/program.h"

namespace lissome {

struct TrainOptions;

struct TrainingBytes {
  int64_t weights = 0;    // and buffers, tied ones once
  int64_t gradients = 0;  // of floating parameters, where they are kept from a step to its update
  int64_t states = 0;     // of the optimizer

  int64_t total() const { return weights + gradients + states; }
};

// States in a file count for nothing, nor do gradients that are used up inside the step.
TrainingBytes count_training_bytes(const Program& program, const TrainOptions& options);

}  // namespace lissome

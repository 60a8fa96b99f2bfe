// What training holds beside the values inside a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/train/budget/budget.h"

namespace lissome {

struct TrainOptions;

struct TrainingBytes {
  int64_t weights = 0;    // and buffers, tied ones once; of those in a file what may be in memory at once
  int64_t gradients = 0;  // of floating parameters, where they are kept from a step to its update
  int64_t states = 0;     // of the optimizer
  // Of weights that lie in a file, and of these in memory at most.
  int64_t waiting = 0, waiting_at_once = 0;

  int64_t total() const { return weights + gradients + states; }
  int64_t saved() const { return waiting - waiting_at_once; }
};

enum class WeightPlace : uint8_t { memory, file };

// States in a file count for nothing, nor do gradients that are used up inside the step.
TrainingBytes count_training_bytes(const Program& program, const TrainOptions& options, WeightPlace place);

// Where weights may lie while a step is planned for options.memory: in a file where the options have a folder for one
// and it would take less memory. The first that fits is to be taken.
std::vector<WeightPlace> list_weight_places(const Program& program, const TrainOptions& options);

// What a step needs to know of weights in a file.
StreamedWeights find_streamed_weights(const Program& program, const TrainOptions& options, WeightPlace place);

// "weights of 512 MiB wait in a file, of which 64 MiB at most are in memory"; empty where none do.
std::string describe_waiting(const TrainingBytes& bytes);

}  // namespace lissome

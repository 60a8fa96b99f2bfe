// The bytes that training holds beside the values inside a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/train/budget/budget.h"

namespace lissome {

struct TrainOptions;

struct TrainingBytes {
  int64_t weights = 0;    // and buffers, tied ones once; of weights in a file, the bytes that may be in memory at once
  int64_t gradients = 0;  // of floating parameters, where gradients stay until the update
  int64_t states = 0;     // of the optimizer
  int64_t update = 0;     // of temporary tensors in the update of a weight, at most
  int64_t exchange = 0;   // of gradients between ranks, with the state of their compression in memory and in a snapshot
  int64_t rounding = 0;   // what allocators round up, and what sessions and losses have for themselves
  // Bytes of weights that are kept in a file, and how many of them are in memory at once at most.
  int64_t offloaded = 0, offloaded_at_once = 0;

  int64_t total() const { return weights + gradients + states + update + exchange + rounding; }
  int64_t saved() const { return offloaded - offloaded_at_once; }
};

enum class WeightPlace : uint8_t { memory, file };

// Does not count states in a file and gradients that are consumed inside the step.
TrainingBytes count_training_bytes(const Program& program, const TrainOptions& options, WeightPlace place);

// Where weights may be while a step is planned for options.memory, in the order to try. A file is listed if the options
// name a folder for it and it saves memory.
std::vector<WeightPlace> list_weight_places(const Program& program, const TrainOptions& options);

// The bytes of weights in a file, as the plan of a step needs them.
StreamedWeights find_streamed_weights(const Program& program, const TrainOptions& options, WeightPlace place);

// The budget of a step under options.memory, of which nothing is taken yet; the caller sets `sizes`.
StepBudget open_budget(const Program& program, const TrainOptions& options, WeightPlace place);

// "weights of 512 MiB are kept in a file, at most 64 MiB of them in memory at once"; empty where no weights are.
std::string describe_offloaded(const TrainingBytes& bytes);

}  // namespace lissome

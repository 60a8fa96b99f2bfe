// Where the values of a step lie: which value of the program owns memory, and how much. The plan tells it for its own
// steps; for steps of libtorch it was observed when the program was interpreted.
#pragma once

#include <cstdint>
#include <vector>

#include "lissome/footprint.h"
#include "lissome/train/budget/facts/lowered_step.h"
#include "lissome/train/budget/facts/size_prediction.h"

namespace lissome {

struct ValuePlacement {
  // By value of the program, as in StepModel.
  std::vector<int> owner;
  std::vector<int64_t> bytes;
  std::vector<bool> held;  // libtorch holds its memory, not the arena
  // By value: it was fused into the step of a later node, which reads the same values as the node that makes it.
  std::vector<bool> joined;
  // By value of the plan: the owner whose memory it is, none for values that only the plan has.
  std::vector<ValueId> owner_of_root;
};

// `footprint` of the plan and `sizes` of the program, both at the wanted sizes.
ValuePlacement place_values(const LoweredStep& step, const Footprint& footprint, const SizePrediction& sizes);

}  // namespace lissome

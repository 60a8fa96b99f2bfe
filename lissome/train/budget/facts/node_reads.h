// The values that each node of a step reads, by the steps that compute it.
#pragma once

#include <vector>

#include "lissome/train/budget/facts/lowered_step.h"
#include "lissome/train/budget/step_model.h"

namespace lissome {

// The nodes of a step model with the values that they read and make, and its producers; all else is left to the caller.
// `joined` as in ValuePlacement.
StepModel list_node_reads(const LoweredStep& step, const std::vector<bool>& joined);

}  // namespace lissome

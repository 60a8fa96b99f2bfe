// Do these inputs fit the plan, and what do its named dimensions become?
#pragma once

#include <span>
#include <string>

#include "lissome/runtime/plan/plan.h"

namespace lissome {

// Throws invalid_input naming the input, what was seen and what is allowed.
DimensionValues match_inputs(const Plan& plan, std::span<const TensorView> inputs);

// "f32[batch, 64] with batch in 1..8"
std::string describe_input(const Plan& plan, const PlanInput& input);

}  // namespace lissome

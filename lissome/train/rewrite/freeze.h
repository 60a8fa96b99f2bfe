// Freezes parameters, which a training then does not change.
#pragma once

#include "lissome/program.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// Turns the parameters that `groups` or requires_grad freeze into buffers, so that no gradients of them are recorded
// and kernels may pack them once. A tied parameter is frozen by each of its names. Throws invalid_input for a frozen
// group whose pattern matches no parameter.
Program freeze_parameters(Program program, const std::vector<ParameterGroup>& groups);

// Describes parameters that do not train although no group freezes them, with the reason; empty if there are none.
std::string describe_still(const Program& program);

// The groups that train.
std::vector<ParameterGroup> list_training_groups(const std::vector<ParameterGroup>& groups);

}  // namespace lissome

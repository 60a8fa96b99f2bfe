// Parameters that a training leaves as they are.
#pragma once

#include "lissome/program.h"
#include "lissome/train/optim/optimizer.h"

namespace lissome {

// `program` with the parameters that `groups` or requires_grad freeze as buffers: no gradients of them are recorded,
// and kernels may pack them once. Tied parameters go by the first of their names. Throws invalid_input: a pattern of a
// frozen group that fits no parameter.
Program freeze_parameters(Program program, const std::vector<ParameterGroup>& groups);

// Which parameters stay as they are without being asked to, and why; empty where none do.
std::string describe_still(const Program& program);

// The groups of those that train.
std::vector<ParameterGroup> list_training_groups(const std::vector<ParameterGroup>& groups);

}  // namespace lissome

// Which node is an activation that fused ops apply on the way out.
#pragma once

#include <string>

#include "lissome/program.h"

namespace lissome {

// The activation that a node applies to its first argument, in the words of the fused ops (program/activation.h); empty
// when it is none of them.
std::string read_activation(const Program& program, const Node& node);

}  // namespace lissome

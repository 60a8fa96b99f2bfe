// Which node is an activation that fused ops apply on the way out.
#pragma once

#include <string>

#include "lissome/pass/rewrite.h"

namespace lissome {

// The activation that a node applies to its first argument, in the words of the fused ops (program/activation.h); empty
// when it is none of them.
std::string read_activation(const Rewriter& rewriter, const Node& node);

}  // namespace lissome

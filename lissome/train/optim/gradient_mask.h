// Which of its results a convolution_backward gives.
#pragma once

#include <array>
#include <optional>

#include "lissome/program.h"

namespace lissome {

using GradientMask = std::array<bool, 3>;  // of the data, the weight, the bias

// Nothing where the node is no convolution_backward, or its mask is computed.
std::optional<GradientMask> read_gradient_mask(const Node& node);
// The node with the results of `mask` alone; the others are none.
Node take_gradients(Program& program, const Node& node, const GradientMask& mask);

}  // namespace lissome

// The mask of a convolution_backward: which of its results it computes.
#pragma once

#include <array>
#include <optional>

#include "lissome/program.h"

namespace lissome {

using GradientMask = std::array<bool, 3>;  // of the data, the weight, the bias

// Empty if the node is not a convolution_backward or its mask is not a constant.
std::optional<GradientMask> read_gradient_mask(const Node& node);
// The node with only the results of `mask`; the others are none values.
Node take_gradients(Program& program, const Node& node, const GradientMask& mask);

}  // namespace lissome

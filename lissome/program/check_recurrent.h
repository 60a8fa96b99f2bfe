// Sizes of what recurrent ops are given. libtorch hands an LSTM to oneDNN unchecked, which then reads and writes past
// the ends of states, weights and biases that are smaller than it was told.
#pragma once

#include <span>

#include "lissome/program/program.h"

namespace lissome {

// Throws invalid_input when states, weights or biases of `aten::lstm.input` do not belong together (`arguments` in
// schema form), unsupported for the inner op of its oneDNN form, which no export holds. Other ops pass.
void check_recurrent(const Node& node, std::span<const c10::IValue> arguments);

}  // namespace lissome

// Sizes of what LSTM layers are given. libtorch hands an LSTM to oneDNN unchecked, which then reads and writes past the
// ends of states, weights and biases that are smaller than it was told.
#pragma once

#include <span>

#include "lissome/program/program.h"

namespace lissome {

// Throws invalid_input when states, weights or biases of `aten::lstm.input` do not belong together (`arguments` in
// schema form).
void check_lstm(std::span<const c10::IValue> arguments);

}  // namespace lissome

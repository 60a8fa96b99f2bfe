// Sizes of what recurrent layers are given. libtorch hands an LSTM to oneDNN unchecked, which then reads and writes
// past the ends of states, weights and biases that are smaller than it was told; and it cuts the rows of weights into
// gates and takes each by its number, however many there are.
#pragma once

#include <span>

#include "lissome/program/program.h"

namespace lissome {

// Each throws invalid_input where states, weights or biases do not belong together. `arguments` are in the order of the
// schema; `gates`: how many are stacked in the weights, 4 of an LSTM, 3 of a GRU, 1 of a plain layer.
void check_recurrent(std::span<const c10::IValue> arguments, int64_t gates);         // aten::lstm.input and its like
void check_packed_recurrent(std::span<const c10::IValue> arguments, int64_t gates);  // aten::lstm.data and its like
void check_recurrent_cell(std::span<const c10::IValue> arguments, int64_t gates);    // aten::lstm_cell and its like

}  // namespace lissome

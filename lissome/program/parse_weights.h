// The tensors of weights that program text declares. For parse.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lissome/program/program.h"
#include "lissome/program/syntax/program_text.h"

namespace lissome {

struct WeightText {
  const TextWeight& text;
  const ValueType& type;
};

// One tensor per weight: the one of its name among `tensors`, which must have the declared dtype and sizes, else zeros
// laid out as declared, tied ones on one storage. Throws invalid_input.
std::vector<at::Tensor> make_weights(const std::vector<WeightText>& weights,
                                     const std::vector<std::pair<std::string, at::Tensor>>& tensors);

}  // namespace lissome

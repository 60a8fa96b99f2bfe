// The tensors of weights that program text declares. For parse.cpp and save.cpp.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lissome/program/program.h"
#include "lissome/program/syntax/program_text.h"

namespace lissome {

struct WeightText {
  const TextWeight& text;
  const ValueType& type;
};

// Tensors by name; those of child programs carry a scope before their name (see body_scope).
struct GivenTensors {
  std::unordered_map<std::string, at::Tensor> by_name;
  bool complete = false;  // a weight without a tensor is refused, else it is zeros
};

// "12.0/": the weights of body 0 of node 12 of the program in `scope`.
std::string body_scope(const std::string& scope, size_t node, size_t body);

// One tensor per weight: the one of its name, which must have the declared dtype and sizes, else zeros laid out as
// declared, tied ones on one storage. Throws invalid_input.
std::vector<at::Tensor> make_weights(const std::vector<WeightText>& weights, const GivenTensors& given,
                                     const std::string& scope);

// parse_program with tensors of child programs and, where wanted, the demand that none is missing.
Program parse_program_with(std::string_view text, const GivenTensors& given);

}  // namespace lissome

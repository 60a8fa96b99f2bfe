// What tests ask of programs: how often they call an op, and what they compute.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/sub.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "lissome/program.h"

namespace lissome {

inline int count_ops(const Program& program, std::string_view op) {
  return static_cast<int>(
      std::count_if(program.nodes.begin(), program.nodes.end(), [&](const Node& node) { return node.is(op); }));
}

// The outputs, which must all be tensors.
inline std::vector<at::Tensor> interpret_tensors(const Program& program, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> outputs;
  for (const c10::IValue& output : interpret(program, {inputs.begin(), inputs.end()}))
    outputs.push_back(output.toTensor());
  return outputs;
}

// The first output of a program with one input.
inline at::Tensor interpret_one(const Program& program, const at::Tensor& input) {
  return interpret_tensors(program, {input}).at(0);
}

// The Frobenius norm of the difference over that of `wanted`.
inline double relative_error(const at::Tensor& seen, const at::Tensor& wanted) {
  return seen.sub(wanted).norm().item().toDouble() / wanted.norm().item().toDouble();
}

}  // namespace lissome

#include "lissome/train/optim/nonfinite.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/aminmax.h>

#include <cmath>

namespace lissome {

bool is_all_finite(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return true;
  const auto [least, most] = at::aminmax(tensor);  // NaN if an element is NaN
  return std::isfinite(least.item().toDouble()) && std::isfinite(most.item().toDouble());
}

std::string find_nonfinite_node(const Program& program, const std::vector<at::Tensor>& inputs) {
  std::string found;
  InterpretOptions options;
  options.observe = [&](const Node& node, std::span<const c10::IValue> results) {
    for (const c10::IValue& result : results) {
      if (found.empty() && result.isTensor() && result.toTensor().defined() && !is_all_finite(result.toTensor()))
        found = describe_node(node);
    }
  };
  interpret(program, {inputs.begin(), inputs.end()}, options);
  return found.empty() ? "no node of this batch alone" : found;
}

}  // namespace lissome

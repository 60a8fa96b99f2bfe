#include "lissome/train/nonfinite.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>

namespace lissome {
namespace {

bool is_finite(const c10::IValue& result) {
  if (!result.isTensor() || !result.toTensor().defined() || !result.toTensor().is_floating_point()) return true;
  return at::isfinite(result.toTensor()).all().item().toBool();
}

}  // namespace

std::string find_nonfinite_node(const Program& program, const std::vector<at::Tensor>& inputs) {
  std::string found;
  InterpretOptions options;
  options.observe = [&](const Node& node, std::span<const c10::IValue> results) {
    for (const c10::IValue& result : results) {
      if (found.empty() && !is_finite(result)) found = describe_node(node);
    }
  };
  interpret(program, {inputs.begin(), inputs.end()}, options);
  return found.empty() ? "no node of this batch alone" : found;
}

}  // namespace lissome

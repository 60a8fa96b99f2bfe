// A C++ torch::nn module as a program. A face of its own, because what stands behind it needs torch's C++ API; its
// headers, which take ten seconds to compile, are left to those who make the module.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lissome/program.h"

// Complete where it is used: <torch/nn/module.h>.
namespace torch::nn {
class Module;
}

namespace lissome {

struct TracedInput {
  std::string name;
  at::Tensor example;
  // Dimensions that may vary, by position: {0, {"batch", 1, 1024}}. Others keep the example's size.
  std::vector<std::pair<int64_t, NamedDimension>> dynamic = {};
};

using ForwardOne = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
using ForwardMany = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// Runs `forward` on the examples, in the module's current mode, and records which ops it calls; where dimensions may
// vary also at other sizes (examples repeated or cut), to find out which numbers are sizes. Parameters and buffers keep
// their names. What depends on the data (branches, loop counts) is recorded as it went. The module's state and the
// random generator are left as they were. Throws unsupported for what cannot be recorded, naming the op, and for code
// that calls other ops at other sizes; invalid_input when examples contradict each other or leave their ranges.
Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const ForwardOne& forward);
Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const ForwardMany& forward);

}  // namespace lissome

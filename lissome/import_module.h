// A C++ torch::nn module as a program. A face of its own, because it needs the whole of torch's C++ API.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <string>
#include <vector>

#include "lissome/program.h"

namespace lissome {

struct TracedInput {
  std::string name;
  at::Tensor example;
  // Dimensions that may vary, by position: {0, {"batch", 1, 1024}}. Others keep the example's size.
  std::vector<std::pair<int64_t, NamedDimension>> dynamic = {};
};

// Runs `forward` once on the examples, in the module's current mode, and records what it did. Parameters and buffers
// keep their names. What C++ decides (branches, loop counts, sizes read with size()) is recorded as it went: a module with
// dynamic dimensions says flatten(1) or -1 instead of reading sizes. `module` is left as it was.
// Throws unsupported for what a trace cannot hold, naming the op.
Program import_module(const torch::nn::Module& module, const std::vector<TracedInput>& inputs,
                      const std::function<at::Tensor(const std::vector<at::Tensor>&)>& forward);

}  // namespace lissome

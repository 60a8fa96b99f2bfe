// Running a body once for all examples of a batch, as torch.func.vmap does: its ops see one example each, PyTorch's
// batching rules carry the others along.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

namespace lissome {

using RunBody = std::function<std::vector<c10::IValue>(std::vector<c10::IValue>)>;

// `mode` is "vmap=<randomness>;<in>;<out>", see pt2/vmap.cpp; `operands` stand in the order of its <in>.
std::vector<c10::IValue> run_vmapped(const std::string& mode, std::vector<c10::IValue> operands, const RunBody& run);

}  // namespace lissome

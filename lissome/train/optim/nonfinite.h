// Finds the node that first computed NaN or infinity, to explain a loss that is not finite.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// "aten::log of head (net.py:12)": the first node that gives NaN or infinity for these inputs.
std::string find_nonfinite_node(const Program& program, const std::vector<at::Tensor>& inputs);
// Whether no element is NaN or infinity. Allocates no memory.
bool is_all_finite(const at::Tensor& tensor);

}  // namespace lissome

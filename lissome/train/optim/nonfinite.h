// Which node made a number that is none: what a person needs to know when a loss becomes NaN.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// "aten::log of head (net.py:12)": the first node, with these inputs, of whose results one is not finite.
std::string find_nonfinite_node(const Program& program, const std::vector<at::Tensor>& inputs);
// Whether all elements are numbers. Takes no memory beside the tensor's.
bool holds_only_numbers(const at::Tensor& tensor);

}  // namespace lissome

// Python's numbers in a program: `_operator.*`, `math.*` and `torch.sym_*` become dispatcher ops of ours on Scalars.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lissome {

// "_operator.floordiv" -> "lissome::sym_floordiv"; empty when the target is no function on numbers.
std::string find_scalar_op(std::string_view python_target);

// All spellings that find_scalar_op() knows, for messages.
std::vector<std::string_view> list_scalar_targets();

}  // namespace lissome

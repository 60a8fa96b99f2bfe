// Sizes of results of layers that have no form for the meta device in C++ and take too long to be called: by their
// formulas, as torch.nn documents them. For check_types.cpp.
#pragma once

#include <functional>
#include <optional>

#include "lissome/program.h"

namespace lissome {

// The sizes of an operand; empty if they are not known.
using FindSizes = std::function<std::optional<Sizes>(ValueId)>;

// The sizes of the first result of a convolution, normalization or attention; empty for other nodes, and where an
// operand or an argument is not known.
std::optional<Sizes> infer_result_sizes(const Node& node, const FindSizes& find_sizes);

}  // namespace lissome

// Which node it is that gradients cannot be recorded through.
#pragma once

#include <functional>
#include <optional>

#include "lissome/program.h"

namespace lissome {

// Throws unsupported where gradients of the program's first output, a scalar, cannot be recorded.
using DifferentiationTry = std::function<void(const Program&)>;

// The position of the first node with which `attempt` throws unsupported, by bisection over how many of the nodes run;
// the loss is then the sum of all that nobody reads. Nothing where no node alone is the cause.
std::optional<size_t> find_undifferentiable_node(const Program& program, const DifferentiationTry& attempt);

// "LSTM encoder (net.py:8), aten::lstm.input", or "torch.cond in Gate gate (net.py:9)", as far as it is known.
std::string describe_layer(const Node& node);
// Whether the node is a region of torch.vmap.
bool is_vmapped(const Node& node);

}  // namespace lissome

// Face of program, for training: programs that compute gradients too. A face of its own, because what stands behind it
// needs the whole of torch.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"
#include "lissome/program/op/rank_link.h"

namespace lissome {

// `program` with the gradients of its first output, a scalar, as further outputs: one for each of `weights`, named
// "gradient.<weight>", of the weight's sizes and dtype; the literal none where the output does not depend on it. What
// the program writes to its state stays written. Weights that are tied are one weight: name it once.
//
// The gradients are PyTorch's own: the program runs through autograd under a listener, on `examples` and, where named
// dimensions allow other sizes, at some of those; the ops that autograd's formulas call become nodes. Composed ops
// stand there as their parts (aten::linear as aten::addmm), as they do in autograd. Takes one forward and backward run
// for each size tried, so small examples are best; example inputs in the program's order, tensors all.
//
// Throws invalid_input when the first output is no scalar, a weight is unknown or cannot have a gradient, or examples
// do not fit; unsupported for ops without a derivative and for what cannot be recorded, naming the op.
Program differentiate_program(const Program& program, const std::vector<std::string>& weights,
                              const std::vector<at::Tensor>& examples);

// The state that a write of the program changes. Throws unsupported where that is an input.
const Weight& find_written_weight(const Program& program, const StateWrite& write);

}  // namespace lissome

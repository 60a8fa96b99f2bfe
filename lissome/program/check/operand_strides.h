// Kernels of ATen's that take an operand for dense, whatever its strides say: they read or write the element behind the
// one before. An expanded tensor of 2^20 elements may lie in the memory of one, and what follows is not the program's.
#pragma once

#include <vector>

#include "lissome/program/op.h"

namespace lissome {

// What a kernel relies on. Unless its name or its tags vouch for it, `distinct`: tensors that need less memory than
// they have elements, which views of distinct elements never do, are copied.
enum class StrideNeed { any, distinct, last, rows };  // last: also elements of the last dimension are neighbours
StrideNeed find_stride_need(const Op& op);

// Copies the tensors that do not have the strides which the kernel relies on. Throws invalid_input for one that the
// call writes to.
void fit_strides(const Op& op, StrideNeed need, std::vector<c10::IValue>& stack);

}  // namespace lissome

// Part of restore_matmul: products that einsum hides behind letters.
#pragma once

#include "lissome/pass/rewrite.h"

namespace lissome {

// einsum of two operands that is a batched matrix product -> permute, reshape, matmul and back. True when it fired.
bool restore_einsum(Rewriter& rewriter, int position);

}  // namespace lissome

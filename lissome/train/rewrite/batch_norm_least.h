// Batch norm in train form has no variance over a single value: PyTorch's modules refuse it, ATen's ops write NaN into
// the running variance.
#pragma once

#include "lissome/program.h"

namespace lissome {

// The fewest samples with which each batch norm of the program in train form has two values a channel: 1 or 2. Throws
// invalid_input, naming the node, where no batch has.
int64_t find_least_for_batch_norm(const Program& program);

}  // namespace lissome

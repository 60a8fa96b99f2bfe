// The gradient of ReLU before max pooling's instead of behind it, where it masks fewer numbers and needs nothing of
// what was pooled.
#pragma once

#include "lissome/program.h"

namespace lissome {

// threshold_backward(max_pool2d_with_indices_backward(dy, x), x) -> max_pool2d_with_indices_backward of
// threshold_backward(dy, y), y being what the pooling of x gave. Bits stay: a window's result is the element that its
// gradient goes to, so both masks ask the same of the same number. Kept where the unmasked gradient has other readers.
// Returns how many were moved.
int mask_before_pool(Program& program);

}  // namespace lissome

// Moves the gradient of ReLU before that of max pooling, where it masks fewer numbers and does not need the input of
// the pooling.
#pragma once

#include "lissome/program.h"

namespace lissome {

// threshold_backward(max_pool2d_with_indices_backward(dy, x), x) -> max_pool2d_with_indices_backward of
// threshold_backward(dy, y), where y is the result of pooling x. Bits stay: a window's result is the element that its
// gradient goes to, so both masks test the same number. Not if the unmasked gradient has other readers. Returns the
// number of moved gradients.
int mask_before_pool(Program& program);

}  // namespace lissome

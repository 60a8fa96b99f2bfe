// Convolutions of joined inputs in parts, for training steps: what skips join is never laid side by side, nor is its
// gradient, of which each part is wanted at another time.
#pragma once

#include "lissome/program.h"

namespace lissome {

// conv(cat(a, b), W) becomes conv(a, Wa) + conv(b, Wb), the sum inside of the last convolution, and its gradients those
// of the parts. Only in f32, where the parts are of known channels, 16 or more each, nothing but the convolution and
// its gradient reads what is joined, and of that gradient only the parts are read. Sums are the same in another order.
// Returns how many convolutions were split.
int split_joined(Program& program);

}  // namespace lissome

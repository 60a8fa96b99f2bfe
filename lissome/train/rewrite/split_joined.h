// Splits convolutions of concatenated inputs for training steps, so that neither the concatenation, as of skip
// connections, nor its gradient is stored. Each part of the gradient is needed at another time.
#pragma once

#include "lissome/program.h"

namespace lissome {

// conv(cat(a, b), W) becomes conv(a, Wa) + conv(b, Wb), summed inside the last convolution, with the gradients of the
// parts. Applies in f32 to parts of 16 known channels or more, if only the convolution and its gradient read the
// concatenation and only parts of its gradient are read. Sums are the same in another order. Returns the number of
// split convolutions.
int split_joined(Program& program);

}  // namespace lissome

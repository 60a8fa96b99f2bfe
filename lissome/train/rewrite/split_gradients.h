// Gradients of convolutions one by one, for schedules that fit memory: that of the weight first, which reads the
// convolution's input, then that of the data, so that the input may go before the larger result is made.
#pragma once

#include "lissome/program.h"

namespace lissome {

// Every convolution_backward that gives the gradient of its data and another becomes two nodes. Each result comes of
// the same computation as before, so bits stay. Returns how many were split.
int split_gradients(Program& program);

}  // namespace lissome

// Splits the gradients of convolutions for schedules that fit memory: first the gradient of the weight, which reads the
// convolution's input, then that of the data, so that the input is freed before the larger result is computed.
#pragma once

#include "lissome/program.h"

namespace lissome {

// Every convolution_backward that gives the gradient of its data and another one becomes two nodes. The same
// computation gives each result, so bits stay. Returns the number of split nodes.
int split_gradients(Program& program);

}  // namespace lissome

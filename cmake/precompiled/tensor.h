// What files that hold tensors but call no ops include. Apart from dispatcher.h, because gcc instantiates
// what a precompiled header's inline functions use anew in every file: 3 s with the dispatcher, 0.8 s without.
#pragma once

#include <ATen/core/Tensor.h>

#include "standard.h"

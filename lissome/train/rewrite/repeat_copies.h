// Repeats copies of inputs in another layout for each reader, so that in a plan that fits a budget no copy is kept from
// the forward to the backward pass.
#pragma once

#include "lissome/runtime.h"

namespace lissome {

// Every step that copies an input for several later steps runs again before each of them but the first. The input stays
// readable throughout the step, so no value lives longer. Returns the number of added copies.
int repeat_copies(Plan& plan);

}  // namespace lissome

// Copies of inputs in another layout, made again for each reader: in a plan that fits a budget none waits from the
// forward pass for the backward pass.
#pragma once

#include "lissome/runtime.h"

namespace lissome {

// Every step that copies an input for several later steps runs again before each of them but the first. What is copied
// stays readable all the while, so no value lives longer. Returns how many copies were added.
int repeat_copies(Plan& plan);

}  // namespace lissome

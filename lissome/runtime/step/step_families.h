// The lists of declared steps, one a family; step_table.cpp gathers them.
#pragma once

#include <vector>

#include "lissome/runtime/step/step_binder.h"

namespace lissome {

std::vector<StepRow> list_conv_u8s8_steps();
std::vector<StepRow> list_linear_u8s8_steps();

}  // namespace lissome

// The lists of declared steps; step_table.cpp gathers them.
#pragma once

#include <vector>

#include "lissome/runtime/step/step_binder.h"

namespace lissome {

// One function a file *_steps.cpp: `list_pool_steps()` stands in pool_steps.cpp.
#define LISSOME_LIST(name) std::vector<StepRow> name();
#include "lissome/runtime/step_lists.inc"
#undef LISSOME_LIST

}  // namespace lissome

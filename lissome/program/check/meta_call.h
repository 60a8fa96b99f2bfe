// Calls of ops on the meta device, whose tensors have sizes and a dtype but no elements. For check_types.cpp.
#pragma once

#include "lissome/program.h"

namespace lissome {

bool has_meta_form(const Op& op);

// Replaces the arguments of a call, whose tensors are on the meta device, by its results; false where the size of these
// depends on elements. Throws what checks of values throw, which libtorch's forms for this device need as much as those
// for the CPU, and what libtorch throws.
bool call_without_elements(const Op& op, std::vector<c10::IValue>& stack);

}  // namespace lissome

// What is looked at in the arguments of a call right before it, where a kernel of ATen's takes them at their word: the
// last gate of a program that comes from a file. Interpretation and the reference library both ask it, since what an
// index tensor holds is known only then. The functions by op stand in check_values_*.cpp.
#pragma once

#include <span>

#include "lissome/program/program.h"

namespace lissome {

using ValueCheck = void (*)(std::span<const c10::IValue> arguments);

// Null for ops that check their own arguments.
ValueCheck find_value_check(const Op& op);

}  // namespace lissome

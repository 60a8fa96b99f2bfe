// What is looked at in the arguments of a call right before it, where a kernel of ATen's takes them at their word: the
// last gate of a program that comes from a file. Interpretation and the reference library both ask it, since what an
// index tensor holds is known only then. The functions by op stand in check_values_*.cpp.
#pragma once

#include <span>

#include "lissome/program/program.h"

namespace lissome {

using IValueSpan = std::span<const c10::IValue>;
using ValueCheck = void (*)(IValueSpan arguments);

// What an op leaves unset in its results is zero-filled behind the call.
using ResultFinish = void (*)(IValueSpan arguments, IValueSpan results);
// Null for most.
ResultFinish find_result_finish(const Op& op);

// Null for ops that check their own arguments.
ValueCheck find_value_check(const Op& op);

}  // namespace lissome

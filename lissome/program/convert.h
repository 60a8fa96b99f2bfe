// Between a program's arguments and the dispatcher's values. A schema type decides the form: a list of ints and of
// int values becomes an int list, a number where a tensor is wanted becomes a wrapped number, as in Python.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <functional>
#include <string>

#include "lissome/program/program.h"

namespace lissome {

using ValueLookup = std::function<c10::IValue(ValueId)>;

// Resolves values with `lookup`; lists stay generic lists of what they hold.
c10::IValue resolve_argument(const Argument& argument, const ValueLookup& lookup);

// Gives a value the form that the schema argument wants. Throws invalid_input naming the argument when it cannot.
c10::IValue fit_to_schema(c10::IValue value, const c10::Argument& expected);

// What a literal or value could never fit: empty when it fits as far as its kind tells. For verify.
std::string find_misfit(const Program& program, const Argument& argument, const c10::Argument& expected);

}  // namespace lissome

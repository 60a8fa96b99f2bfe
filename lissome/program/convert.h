// Between a program's arguments and the dispatcher's values. A schema type decides the form: a list of ints and of
// int values becomes an int list, a number where a tensor is wanted becomes a wrapped number, as in Python.
#pragma once

#include <string>

#include "lissome/program.h"

namespace lissome {

// What a literal or value could never fit: empty when it fits as far as its kind tells. For verify.
std::string find_misfit(const Program& program, const Argument& argument, const c10::Argument& expected);
// Likewise of the type of a result.
std::string find_result_misfit(const ValueType& type, const c10::Argument& given);

}  // namespace lissome

// Face of base for what loads our other shared libraries.
#pragma once

#include <string>

namespace lissome {

// Where the file lies that holds this function (liblissome_runtime.so, or a program with base inside), with a slash at
// the end. Empty where the loader does not say.
std::string find_own_folder();

}  // namespace lissome

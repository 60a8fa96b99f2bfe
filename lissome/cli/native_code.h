// Runs native code that AOTInductor compiled from a model and put into a .pt2. It is loaded into this process and can
// run arbitrary code, so these functions are called only if the user asked for it (bench --allow-native).
#pragma once

#include <string>

#include "lissome/cli/model.h"

namespace lissome {

NativeCode find_native_code(const std::string& path);
// Loads the code. Throws invalid_input if libtorch cannot load it.
NativeRun open_native_code(const std::string& path, int threads);

}  // namespace lissome

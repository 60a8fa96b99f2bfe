// Native code that AOTInductor made of a model and put into a .pt2. It is loaded into this process and can run
// arbitrary code, so nothing here is called unless the user asked for it (bench --allow-native).
#pragma once

#include <string>

#include "lissome/cli/model.h"

namespace lissome {

NativeCode find_native_code(const std::string& path);
// Loads the code. Throws invalid_input when libtorch cannot.
NativeRun open_native_code(const std::string& path, int threads);

}  // namespace lissome

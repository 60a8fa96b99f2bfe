// Face of runtime for libraries with ops of the user's own (TORCH_LIBRARY): loading one by name. What they define may
// be called by model files that name it once allow_op() has allowed it.
#pragma once

#include <string>

namespace lissome {

// Loads a shared library, libtorch before it. It is native code that the user names: it may do anything, and no file
// can name one. Throws usage when it is not there, unsupported when it cannot be loaded or there is no libtorch.
void load_op_library(const std::string& path);

}  // namespace lissome

// Opens a model file of any kind as a program.
#pragma once

#include <string>

#include "lissome/program.h"

namespace lissome {

// Opens a .pt2 or a .lissome. Throws unsupported or invalid_input for another file, with its kind and the lines that
// export it.
Program open_program(const std::string& path);

}  // namespace lissome

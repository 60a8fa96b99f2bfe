// A model file as a program, whatever its kind.
#pragma once

#include <string>

#include "lissome/program.h"

namespace lissome {

// .pt2 or .lissome; anything else is refused by name, with the lines that export it (unsupported or invalid_input).
Program open_program(const std::string& path);

}  // namespace lissome

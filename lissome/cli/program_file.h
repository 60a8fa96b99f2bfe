// Opens a model file of any kind as a program.
#pragma once

#include <string>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// Opens a .pt2 or a .lissome. Throws unsupported or invalid_input for another file, with its kind and the lines that
// export it.
Program open_program(const std::string& path);

// Notes on a program before its eval form is made: that it is in train form, and that each call updates its state.
std::vector<std::string> describe_eval_form(const Program& original);

}  // namespace lissome

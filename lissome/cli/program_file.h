// Opens a model file of any kind as a program.
#pragma once

#include <string>

#include "lissome/program.h"

namespace lissome {

// Opens a .pt2 or a .lissome. Throws unsupported or invalid_input for another file, with its kind and the lines that
// export it.
Program open_program(const std::string& path);

// Note on a program in train form, before its eval form is made.
inline constexpr const char* kEvalFormNote =
    "note: the model is in train form (with dropout or batch statistics), so it is converted to its eval form: dropout "
    "is "
    "left out, and running statistics are used";

}  // namespace lissome

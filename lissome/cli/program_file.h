// A model file as a program, whatever its kind.
#pragma once

#include <string>

#include "lissome/program.h"

namespace lissome {

// .pt2 or .lissome; anything else is refused by name, with the lines that export it (unsupported or invalid_input).
Program open_program(const std::string& path);

// Of a program for training, before its eval form is made.
inline constexpr const char* kEvalFormNote =
    "note: the model holds steps of train mode (dropout, statistics of the batch). Its eval form is made: dropout is "
    "left out, and running statistics are read";

}  // namespace lissome

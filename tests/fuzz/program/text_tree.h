// The untyped tree of program text, written back as text, for mutators that edit the tree.
#pragma once

#include <string>

#include "lissome/program/syntax/program_text.h"

namespace lissome {

std::string print_tree(const TextProgram& program);

// "# data 7" in the first line: what weights and inputs of the program are filled with; 0 without it.
uint64_t read_data_number(std::string_view text);

}  // namespace lissome

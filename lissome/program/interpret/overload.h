// From the arguments as written to a schema: which overload is meant, and which argument stands where. For parse.cpp.
#pragma once

#include <string>
#include <vector>

#include "lissome/program/program.h"
#include "lissome/program/syntax/program_text.h"

namespace lissome {

struct NamedArgument {
  std::string keyword;  // empty: by position
  Argument value;
  TextPlace place;
};

// The op of that name, or the one overload of it that the arguments fit. Throws unsupported when there is none.
Op find_overload(const std::string& name, const std::vector<NamedArgument>& arguments, const Program& program,
                 TextPlace place);

// In schema order, defaults written out. Throws invalid_input naming what is missing or unknown.
ArgumentList bind_arguments(const Op& op, std::vector<NamedArgument> arguments, TextPlace place);

}  // namespace lissome

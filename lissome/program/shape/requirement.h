// What the sizes of a program's inputs must satisfy beyond the ranges of its dimensions: torch.export follows one
// branch of the code of a module, and records when it would have followed another. Torch-free.
#pragma once

#include <string>
#include <string_view>

#include "lissome/program/shape/dimension.h"

namespace lissome {

struct SizeRequirement {
  std::string text;  // "n % 2 == 0"
  Dimension slack;   // met where it is at least 0

  // Comparisons of sizes (==, !=, <, <=, >, >=), joined by `and`, `or`, `not` and brackets, as Python writes them;
  // invalid_input otherwise. Sizes are those of Dimension::parse.
  static SizeRequirement parse(std::string_view text);
};

}  // namespace lissome

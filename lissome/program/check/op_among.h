// Whether an op is one of a list of names, whichever overload it is.
#pragma once

#include <algorithm>
#include <string_view>

#include "lissome/program.h"

namespace lissome {

// `names`: without overloads, "aten::conv2d".
template <typename List>
bool is_among(const List& names, const Op& op) {
  const std::string_view word = std::string_view(op.name()).substr(0, op.name().find('.'));
  return std::find(names.begin(), names.end(), word) != names.end();
}

}  // namespace lissome

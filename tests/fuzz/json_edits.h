// Edits that any JSON document may get.
#pragma once

#include <nlohmann/json.hpp>

#include "lissome/base/text.h"
#include "tests/fuzz/random.h"

namespace lissome {

// Some leaf becomes a value of any type, or a member goes.
void change_any_leaf(Json& json, FuzzRandom& random);
// A number becomes one at which sizes, strides and attributes change their meaning, or a neighbour.
void change_integer(Json& number, FuzzRandom& random);
// Numbers at which sizes, strides and attributes change their meaning.
int64_t pick_number(FuzzRandom& random);
// Small, so that what has it may still run.
int64_t pick_size(FuzzRandom& random);

// The position that it is; -1 of what is none: an edit before may have left anything.
inline int read_id(const Json& json) {
  if (!json.is_number_integer()) return -1;
  const auto number = json.get<int64_t>();
  return number >= 0 && number <= INT32_MAX ? static_cast<int>(number) : -1;
}

}  // namespace lissome

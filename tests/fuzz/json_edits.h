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

}  // namespace lissome

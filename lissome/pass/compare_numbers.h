// The debugging aid of the driver: do two programs still compute the same?
#pragma once

#include <string_view>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// Interprets both and throws internal, naming `step`, when an output differs by more than rounding: relative to the
// largest magnitude of the output 1e-4 in f32, 1e-2 in f16 and bf16, exactly in integers; non-finite places must agree.
void compare_numbers(const Program& before, const Program& after, const std::vector<c10::IValue>& inputs,
                     std::string_view step);

}  // namespace lissome

// The debugging aid of the driver: do two programs still compute the same?
#pragma once

#include <string_view>
#include <vector>

#include "lissome/program.h"

namespace lissome {

// Interprets both with the same random numbers and throws internal, naming `step`, when an output or state write
// differs by more than rounding: relative to its largest magnitude 1e-4 in f32, 1e-2 in f16 and bf16, 1e-10 in f64, not
// at all in integers and non-finite places. The generator is left as it was found.
void compare_numbers(const Program& before, const Program& after, const std::vector<c10::IValue>& inputs,
                     std::string_view step);

}  // namespace lissome

// Whether f32 products may run as products of three bf16 parts, on tile registers.
#pragma once

#include <string_view>

#include "lissome/kernel.h"

namespace lissome {

// The machine has tile registers for `kernel`, and the weight is finite: an infinity has no parts that sum to it.
inline bool may_split_bf16x3(bool finite_weight, std::string_view kernel) {
  return finite_weight && find_kernel(kernel).isa == Isa::amx;
}

}  // namespace lissome

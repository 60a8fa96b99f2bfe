// From floats to the numbers of u8.
#pragma once

#include "lissome/kernel/isa/vector.h"

namespace lissome {
namespace {

// Round half to even, zero point added; NaN becomes 0.
LISSOME_INLINE Floats quantize_vector(Floats y, float inverse, float zero) {
  const Floats low = fill(-zero), high = fill(255 - zero);
  // As the second operand of the maximum the bound wins over NaN.
  const Floats clamped = min_with(high, max_with(y * fill(inverse), low));
  return round_to_nearest(clamped) + fill(zero);
}

}  // namespace
}  // namespace lissome

// Where a pixel of the result lies between the pixels of x. Static: see split.h.
#pragma once

#include "lissome/kernel/interpolate/interpolate.h"

namespace lissome {
namespace {

struct InterpolatePlace {
  int64_t first, second;  // equal at the border
  float share;            // of the second
};

inline __attribute__((always_inline)) InterpolatePlace find_place(const InterpolateShape& call, int64_t out,
                                                                  int64_t size, float scale) {
  const float at = static_cast<float>(out);
  float exact = call.aligned_corners || !call.bilinear ? at * scale : (at + 0.5f) * scale - 0.5f;
  if (exact < 0) exact = 0;
  int64_t first = static_cast<int64_t>(exact);
  if (first > size - 1) first = size - 1;
  float share = exact - static_cast<float>(first);
  if (share > 1) share = 1;
  if (!call.bilinear) return {first, first, 0};
  return {first, first < size - 1 ? first + 1 : first, share};
}

}  // namespace
}  // namespace lissome

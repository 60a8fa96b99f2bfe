// What attention does to its scores before the softmax, over Floats.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/attention/attention.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Scales one row of scores, adds the mask (of the head), excludes what causality excludes; returns the largest. Whole
// registers are read and written; what lies beyond the keys becomes -infinity.
LISSOME_INLINE float mask_scores(const AttentionShape& call, const void* mask, float* scores, int64_t query,
                                 Range keys) {
  const int64_t count = keys.end - keys.begin;
  const int64_t seen =
      call.causal && query + 1 < keys.end ? (query + 1 > keys.begin ? query + 1 - keys.begin : 0) : count;
  const int64_t mask_at = query * call.mask_strides.row + keys.begin;
  if (call.mask_kind == MaskKind::chosen) {
    const uint8_t* chosen = static_cast<const uint8_t*>(mask) + mask_at;
    for (int64_t n = 0; n < seen; ++n) scores[n] = chosen[n] ? scores[n] : -__builtin_inff();
  }
  Floats largest = fill(-__builtin_inff());
  for (int64_t n = 0; n < count; n += Floats::kWidth) {
    const int64_t left = seen - n;
    Floats value = load(scores + n) * fill(call.scale);
    if (call.mask_kind == MaskKind::added && left > 0) {
      value = value +
              load_first(static_cast<const float*>(mask) + mask_at + n, left < Floats::kWidth ? left : Floats::kWidth);
    }
    if (left < Floats::kWidth) value = first_of_or(value, left > 0 ? left : 0, -__builtin_inff());
    store(scores + n, value);
    largest = max_with(value, largest);
  }
  return max_lanes(largest);
}

}  // namespace
}  // namespace lissome

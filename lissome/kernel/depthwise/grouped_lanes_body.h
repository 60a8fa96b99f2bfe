// Convolutions of small groups, as depthwise ones whose channels each read some of their neighbours: a register holds
// several groups, or a part of one, and the weights of all its channels for one input, or in bf16 for two.
#pragma once

#include "lissome/kernel/depthwise/depthwise_body.h"

namespace lissome {
namespace {

// The first channel of the group of each lane, where groups of `group` begin with lane 0.
#ifdef __AVX512F__
using Lanes = __m512i;
LISSOME_INLINE Lanes find_group_lanes(int64_t group) {
  const Lanes lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_and_si512(lanes, _mm512_set1_epi32(static_cast<int>(-group)));
}
// Each lane takes lane `from` + i.
LISSOME_INLINE Floats spread_lanes(Floats a, Lanes from, int64_t i) {
  return {_mm512_permutexvar_ps(_mm512_add_epi32(from, _mm512_set1_epi32(static_cast<int>(i))), a.v)};
}
#else
using Lanes = __m256i;
LISSOME_INLINE Lanes find_group_lanes(int64_t group) {
  const Lanes lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_and_si256(lanes, _mm256_set1_epi32(static_cast<int>(-group)));
}
LISSOME_INLINE Floats spread_lanes(Floats a, Lanes from, int64_t i) {
  return {_mm256_permutevar8x32_ps(a.v, _mm256_add_epi32(from, _mm256_set1_epi32(static_cast<int>(i))))};
}
#endif

// Several groups in a register.
struct SmallGroups {
  int64_t inputs;
  Lanes lanes;
  explicit SmallGroups(int64_t group) : inputs(group), lanes(find_group_lanes(group)) {}
  template <typename T>
  LISSOME_INLINE Floats read(const T* pixel, int64_t c, int64_t count, int64_t i) const {
    return spread_lanes(load_lanes(pixel + c, count), lanes, i);
  }
};

LISSOME_INLINE float widen_number(float x) { return x; }
LISSOME_INLINE float widen_number(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16); }

// One or more registers a group.
struct WideGroups {
  int64_t inputs;
  explicit WideGroups(int64_t group) : inputs(group) {}
  template <typename T>
  LISSOME_INLINE Floats read(const T* pixel, int64_t c, int64_t, int64_t i) const {
    return fill(widen_number(pixel[(c & -inputs) + i]));
  }
};

// run(groups) with those that hold `group` channels each: `Small` where a register holds several, else `Wide`.
template <typename Small, typename Wide, typename Function>
LISSOME_INLINE void choose_groups(int64_t group, const Function& run) {
  if (group < Floats::kWidth) {
    run(Small(group));
  } else {
    run(Wide(group));
  }
}

}  // namespace
}  // namespace lissome

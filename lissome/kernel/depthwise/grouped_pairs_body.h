// The grouped convolution in bf16 over Floats. With AVX-512 BF16, pairs of products are summed by one instruction; else
// x and weight are widened, which is exact, and multiplied in f32.
#pragma once

#include "lissome/kernel/depthwise/grouped_lanes_body.h"

namespace lissome {
namespace {

#ifdef __AVX512BF16__
LISSOME_INLINE Floats as_lanes(__m512i words) { return {_mm512_castsi512_ps(words)}; }

// Values and weights are pairs of inputs.
struct PairWeights {
  template <typename Call>
  static LISSOME_INLINE Floats weigh(const Call& call, int64_t pair, int64_t c, int64_t lanes) {
    const uint16_t* from = call.weight + (pair * call.channels + c) * 2;
    return as_lanes(lanes >= 16 ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi32(first_lanes(lanes), from));
  }
  static LISSOME_INLINE Floats add(Floats value, Floats weight, Floats sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(value.v), reinterpret_cast<__m512bh>(weight.v))};
  }
};

struct SmallPairs : PairWeights {
  int64_t inputs;  // pairs
  Lanes first;     // pair of each lane's group
  explicit SmallPairs(int64_t group) : inputs(group / 2), first(_mm512_srli_epi32(find_group_lanes(group), 1)) {}
  LISSOME_INLINE Floats read(const uint16_t* pixel, int64_t c, int64_t count, int64_t i) const {
    const auto* from = reinterpret_cast<const __m256i*>(pixel + c);
    const __m256i x = count >= 16 ? _mm256_loadu_si256(from) : _mm256_maskz_loadu_epi16(first_lanes(count), from);
    return spread_lanes(as_lanes(_mm512_castsi256_si512(x)), first, i);
  }
};

struct WidePairs : PairWeights {
  int64_t inputs;  // pairs
  explicit WidePairs(int64_t group) : inputs(group / 2) {}
  LISSOME_INLINE Floats read(const uint16_t* pixel, int64_t c, int64_t, int64_t i) const {
    int pair;
    __builtin_memcpy(&pair, pixel + (c & -2 * inputs) + 2 * i, 4);
    return as_lanes(_mm512_set1_epi32(pair));
  }
};
#else
// The halves of pairs, one after the other.
template <typename Groups>
struct PairHalves : Groups {
  using Groups::Groups;
  template <typename Call>
  LISSOME_INLINE Floats weigh(const Call& call, int64_t input, int64_t c, int64_t lanes) const {
    const uint16_t* from = call.weight + (input / 2 * call.channels + c) * 2;
    Words words;
    if (lanes >= Floats::kWidth) {
      words = load_words(from);
    } else {
      alignas(64) uint16_t some[2 * Floats::kWidth] = {};
      __builtin_memcpy(some, from, static_cast<size_t>(lanes) * 4);
      words = load_words(some);
    }
    return input % 2 == 0 ? even_of(words) : odd_of(words);
  }
  static LISSOME_INLINE Floats add(Floats value, Floats weight, Floats sum) { return multiply_add(value, weight, sum); }
};
using SmallPairs = PairHalves<SmallGroups>;
using WidePairs = PairHalves<WideGroups>;
#endif

LISSOME_INLINE void run_group_pairs(const GroupedBf16Call& call, int part, int parts) {
  choose_groups<SmallPairs, WidePairs>(call.group,
                                       [&](const auto& groups) { run_depthwise(call, part, parts, groups); });
}

}  // namespace
}  // namespace lissome

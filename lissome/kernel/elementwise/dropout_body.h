// Counted dropout: the counters of 16 (or 8) lanes in registers, four numbers each.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/elementwise/dropout.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/vector_bf16.h"

namespace lissome {
namespace {

#ifdef __AVX512F__
using Lanes = __m512i;
LISSOME_INLINE Lanes fill_lanes(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
LISSOME_INLINE Lanes count_lanes() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
LISSOME_INLINE Lanes add_lanes(Lanes a, Lanes b) { return _mm512_add_epi32(a, b); }
LISSOME_INLINE Lanes exclusive_or(Lanes a, Lanes b, Lanes c) { return _mm512_ternarylogic_epi32(a, b, c, 0x96); }
// Of each lane: the upper and the lower half of its product.
LISSOME_INLINE void multiply_halves(Lanes a, Lanes b, Lanes& upper, Lanes& lower) {
  const Lanes even = _mm512_mul_epu32(a, b), odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
  upper = _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xAAAA, odd);
  lower = _mm512_mask_mov_epi32(even, 0xAAAA, _mm512_slli_epi64(odd, 32));
}
LISSOME_INLINE Floats choose_scale(Lanes numbers, uint32_t threshold, float scale) {
  return {_mm512_maskz_mov_ps(_mm512_cmplt_epu32_mask(numbers, fill_lanes(threshold)), _mm512_set1_ps(scale))};
}
#else
using Lanes = __m256i;
LISSOME_INLINE Lanes fill_lanes(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
LISSOME_INLINE Lanes count_lanes() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
LISSOME_INLINE Lanes add_lanes(Lanes a, Lanes b) { return _mm256_add_epi32(a, b); }
LISSOME_INLINE Lanes exclusive_or(Lanes a, Lanes b, Lanes c) { return _mm256_xor_si256(_mm256_xor_si256(a, b), c); }
LISSOME_INLINE void multiply_halves(Lanes a, Lanes b, Lanes& upper, Lanes& lower) {
  const Lanes even = _mm256_mul_epu32(a, b), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
  upper = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
  lower = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
LISSOME_INLINE Floats choose_scale(Lanes numbers, uint32_t threshold, float scale) {
  const Lanes sign = fill_lanes(0x80000000);  // unsigned numbers in the order of signed ones
  const Lanes kept = _mm256_cmpgt_epi32(_mm256_xor_si256(fill_lanes(threshold), sign), _mm256_xor_si256(numbers, sign));
  return {_mm256_and_ps(_mm256_castsi256_ps(kept), _mm256_set1_ps(scale))};
}
#endif

struct Counters {
  Lanes word[4];
};

// The block's lanes from `first` on.
LISSOME_INLINE Counters make_numbers(uint64_t seed, uint64_t stream, uint64_t block, uint32_t first) {
  const uint64_t counter = block * 16;  // its lower half does not overflow within a block
  Counters c = {{add_lanes(fill_lanes(static_cast<uint32_t>(counter) + first), count_lanes()),
                 fill_lanes(static_cast<uint32_t>(counter >> 32)), fill_lanes(static_cast<uint32_t>(stream)),
                 fill_lanes(static_cast<uint32_t>(stream >> 32))}};
  const Lanes multiply0 = fill_lanes(kPhilox.multiply0), multiply1 = fill_lanes(kPhilox.multiply1);
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int i = 0; i < kPhiloxRounds; ++i) {
    Lanes upper0, lower0, upper1, lower1;
    multiply_halves(c.word[0], multiply0, upper0, lower0);
    multiply_halves(c.word[2], multiply1, upper1, lower1);
    c = {{exclusive_or(upper1, c.word[1], fill_lanes(key0)), lower1, exclusive_or(upper0, c.word[3], fill_lanes(key1)),
          lower0}};
    key0 += kPhilox.add0, key1 += kPhilox.add1;
  }
  return c;
}

LISSOME_INLINE Floats load_some(const auto* p, int64_t count) {
  return count >= Floats::kWidth ? load(p) : load_first(p, count);
}
LISSOME_INLINE void store_some(auto* p, Floats a, int64_t count) {
  if (count >= Floats::kWidth) {
    store(p, a);
  } else {
    store_first(p, a, count);
  }
}

template <typename T>
LISSOME_INLINE void drop_elements(const DropoutCallOf<T>& call, int part, int parts) {
  const Range range = split_by_unit(call.count, kDropoutBlock, part, parts);
  const auto seed = static_cast<uint64_t>(*call.seed);
  for (int64_t i = range.begin; i < range.end; i += kDropoutBlock) {
    for (int first = 0; first < 16; first += Floats::kWidth) {
      const Counters numbers =
          make_numbers(seed, call.stream, static_cast<uint64_t>(i / kDropoutBlock), static_cast<uint32_t>(first));
      for (int word = 0; word < 4; ++word) {
        const int64_t at = i + word * 16 + first;
        if (at >= range.end) break;
        const Floats scales = choose_scale(numbers.word[word], call.threshold, call.scale);
        store_some(call.y + at, load_some(call.x + at, range.end - at) * scales, range.end - at);
      }
    }
  }
}

LISSOME_INLINE void run_dropout(const DropoutCall& call, int part, int parts) { drop_elements(call, part, parts); }
LISSOME_INLINE void run_dropout_bf16(const DropoutBf16Call& call, int part, int parts) {
  drop_elements(call, part, parts);
}

}  // namespace
}  // namespace lissome

// bf16 in memory, f32 in registers: loads widen exactly, stores round to nearest even and keep NaN. Over Floats.
#pragma once

#include "lissome/kernel/isa/vector.h"

namespace lissome {
namespace {

// Pairs of bf16 as 32-bit words: the even one of each, and the odd one.
#ifdef __AVX512F__
using Words = __m512i;
inline Words load_words(const uint16_t* p) { return _mm512_loadu_si512(p); }
inline Floats even_of(Words pairs) { return {_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16))}; }
inline Floats odd_of(Words pairs) {
  return {_mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000))))};
}

inline Floats widen_lanes(__m256i bits) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
inline Floats load(const uint16_t* p) { return widen_lanes(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline Floats load_first(const uint16_t* p, int64_t count) {
  return widen_lanes(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}
inline __m256i narrow_lanes(Floats a) {
#ifdef __AVX512BF16__
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.v));
#else
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  const __mmask16 unknown = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, unknown, _mm512_set1_epi32(0x7fc0)));
#endif
}
inline void store(uint16_t* p, Floats a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_lanes(a)); }
inline void store_first(uint16_t* p, Floats a, int64_t count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), narrow_lanes(a));
}
#else
using Words = __m256i;
inline Words load_words(const uint16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline Floats even_of(Words pairs) { return {_mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16))}; }
inline Floats odd_of(Words pairs) {
  return {_mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000))))};
}

inline Floats widen_lanes(__m128i bits) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
}
inline Floats load(const uint16_t* p) { return widen_lanes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline Floats load_first(const uint16_t* p, int64_t count) {
  alignas(16) uint16_t lanes[8] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  return load(lanes);
}
inline __m128i narrow_lanes(Floats a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i unknown = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i kept = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), unknown);
  return _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
}
inline void store(uint16_t* p, Floats a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow_lanes(a)); }
inline void store_first(uint16_t* p, Floats a, int64_t count) {
  alignas(16) uint16_t lanes[8];
  store(lanes, a);
  for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
}
#endif
inline void store_exactly(uint16_t* p, Floats a, int64_t count) { store_first(p, a, count); }

}  // namespace
}  // namespace lissome

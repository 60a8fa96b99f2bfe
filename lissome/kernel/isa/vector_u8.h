// u8 in memory, f32 in registers: loads widen exactly, stores take whole numbers in 0..255. Over Floats.
#pragma once

#include "lissome/kernel/isa/vector.h"

namespace lissome {
namespace {

#ifdef __AVX512F__
inline Floats load(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline Floats load_first(const uint8_t* p, int64_t count) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_lanes(count), p)))};
}
inline void store(uint8_t* p, Floats a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}
inline void store_first(uint8_t* p, Floats a, int64_t count) {
  _mm512_mask_cvtepi32_storeu_epi8(p, first_lanes(count), _mm512_cvtps_epi32(a.v));
}
#else
inline Floats load(const uint8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
inline Floats load_first(const uint8_t* p, int64_t count) {
  alignas(8) uint8_t lanes[8] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
  return load(lanes);
}
inline void store(uint8_t* p, Floats a) {
  const __m256i wide = _mm256_cvtps_epi32(a.v);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
inline void store_first(uint8_t* p, Floats a, int64_t count) {
  if (count >= Floats::kWidth) return store(p, a);
  alignas(8) uint8_t lanes[8];
  store(lanes, a);
  for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
}
#endif

}  // namespace
}  // namespace lissome

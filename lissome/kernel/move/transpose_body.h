// Turns a square of registers, rows into columns.
#pragma once

#include "lissome/kernel/isa/vector.h"

namespace lissome {
namespace {

#ifdef __AVX512F__
LISSOME_INLINE void transpose(Floats (&lines)[16]) {
  __m512 pairs[16], fours[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(lines[i].v, lines[i + 1].v);
    pairs[i + 1] = _mm512_unpackhi_ps(lines[i].v, lines[i + 1].v);
  }
  // fours[4 g + c]: columns 4 q + c of lines 4 g to 4 g + 3, for q = 0 to 3.
#pragma GCC unroll 16
  for (int g = 0; g < 16; g += 4) {
    fours[g] = _mm512_shuffle_ps(pairs[g], pairs[g + 2], 0x44);
    fours[g + 1] = _mm512_shuffle_ps(pairs[g], pairs[g + 2], 0xee);
    fours[g + 2] = _mm512_shuffle_ps(pairs[g + 1], pairs[g + 3], 0x44);
    fours[g + 3] = _mm512_shuffle_ps(pairs[g + 1], pairs[g + 3], 0xee);
  }
#pragma GCC unroll 16
  for (int c = 0; c < 4; ++c) {
    const __m512 low = _mm512_shuffle_f32x4(fours[c], fours[4 + c], 0x88);        // quarters 0 and 2 of groups 0, 1
    const __m512 high = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], 0x88);  // of groups 2, 3
    const __m512 low_odd = _mm512_shuffle_f32x4(fours[c], fours[4 + c], 0xdd);    // quarters 1 and 3
    const __m512 high_odd = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], 0xdd);
    lines[c].v = _mm512_shuffle_f32x4(low, high, 0x88);
    lines[8 + c].v = _mm512_shuffle_f32x4(low, high, 0xdd);
    lines[4 + c].v = _mm512_shuffle_f32x4(low_odd, high_odd, 0x88);
    lines[12 + c].v = _mm512_shuffle_f32x4(low_odd, high_odd, 0xdd);
  }
}
#else
LISSOME_INLINE void transpose(Floats (&lines)[8]) {
  __m256 pairs[8], fours[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(lines[i].v, lines[i + 1].v);
    pairs[i + 1] = _mm256_unpackhi_ps(lines[i].v, lines[i + 1].v);
  }
#pragma GCC unroll 8
  for (int g = 0; g < 8; g += 4) {
    fours[g] = _mm256_shuffle_ps(pairs[g], pairs[g + 2], 0x44);
    fours[g + 1] = _mm256_shuffle_ps(pairs[g], pairs[g + 2], 0xee);
    fours[g + 2] = _mm256_shuffle_ps(pairs[g + 1], pairs[g + 3], 0x44);
    fours[g + 3] = _mm256_shuffle_ps(pairs[g + 1], pairs[g + 3], 0xee);
  }
#pragma GCC unroll 8
  for (int c = 0; c < 4; ++c) {
    lines[c].v = _mm256_permute2f128_ps(fours[c], fours[4 + c], 0x20);
    lines[4 + c].v = _mm256_permute2f128_ps(fours[c], fours[4 + c], 0x31);
  }
}
#endif

}  // namespace
}  // namespace lissome

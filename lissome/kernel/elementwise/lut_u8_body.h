// Lookups in sixteen slices of sixteen entries, each a shuffle within lanes: of indices reduced by the slice's first,
// those outside of it have their top bit set after a saturating sum, and a shuffle gives zero for them.
#pragma once

#include "lissome/kernel/isa/vector_int8.h"

#include "lissome/kernel/elementwise/lut_u8.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

#ifdef __AVX512VNNI__
struct ByteTable {
  static constexpr int64_t kWidth = 64;
  __m512i slices[16];

  explicit ByteTable(const uint8_t* table) {
    for (int i = 0; i < 16; ++i)
      slices[i] = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * i)));
  }
  LISSOME_INLINE void look_up(const uint8_t* x, uint8_t* y) const {
    __m512i index = _mm512_loadu_si512(x), found = _mm512_setzero_si512();
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m512i inside = _mm512_adds_epu8(index, _mm512_set1_epi8(0x70));
      found = _mm512_or_si512(found, _mm512_shuffle_epi8(slices[i], inside));
      index = _mm512_sub_epi8(index, _mm512_set1_epi8(16));
    }
    _mm512_storeu_si512(y, found);
  }
};
#else
struct ByteTable {
  static constexpr int64_t kWidth = 32;
  __m256i slices[16];

  explicit ByteTable(const uint8_t* table) {
    for (int i = 0; i < 16; ++i)
      slices[i] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * i)));
  }
  LISSOME_INLINE void look_up(const uint8_t* x, uint8_t* y) const {
    __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)), found = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m256i inside = _mm256_adds_epu8(index, _mm256_set1_epi8(0x70));
      found = _mm256_or_si256(found, _mm256_shuffle_epi8(slices[i], inside));
      index = _mm256_sub_epi8(index, _mm256_set1_epi8(16));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), found);
  }
};
#endif

LISSOME_INLINE void run_lut_u8(const LutU8Call& call, int part, int parts) {
  const Range range = split_by_unit(call.count, ByteTable::kWidth, part, parts);
  const ByteTable table(call.table);
  int64_t i = range.begin;
  for (; i + ByteTable::kWidth <= range.end; i += ByteTable::kWidth) table.look_up(call.x + i, call.y + i);
  for (; i < range.end; ++i) call.y[i] = call.table[call.x[i]];
}

}  // namespace
}  // namespace lissome

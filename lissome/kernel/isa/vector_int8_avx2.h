// 8 s32 sums and the products of four u8 with four s8 that go into each, for AVX2: even and odd bytes are widened to 16
// bits and multiplied apart, because vpmaddubsw would saturate.
#pragma once

#include "lissome/kernel/isa/vector_avx2.h"

namespace lissome {
namespace {

struct Ints {
  __m256i v;
};
struct Weights {  // [8 outputs][4], as s16
  __m256i even, odd;
};
struct Inputs {  // the same four for every output, as u16
  __m256i even, odd;
};

inline Ints zero_ints() { return {_mm256_setzero_si256()}; }
inline Ints fill_ints(int32_t x) { return {_mm256_set1_epi32(x)}; }
inline Ints load_ints_first(const int32_t* p, int64_t count) { return {_mm256_maskload_epi32(p, first_lanes(count))}; }
inline Ints load_u8_first(const uint8_t* p, int64_t count) {
  int64_t bytes = 0;
  __builtin_memcpy(&bytes, p, static_cast<size_t>(count < 8 ? count : 8));
  return {_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes))};
}
inline Ints load_u8(const uint8_t* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}
inline void store_ints(int32_t* p, Ints a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v); }
inline Ints load_ints(const int32_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
inline Ints multiply(Ints a, Ints b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
inline Ints operator+(Ints a, Ints b) { return {_mm256_add_epi32(a.v, b.v)}; }
inline Ints operator-(Ints a, Ints b) { return {_mm256_sub_epi32(a.v, b.v)}; }
inline Ints shift_right(Ints a, int bits) { return {_mm256_sra_epi32(a.v, _mm_cvtsi32_si128(bits))}; }
// Half to even; NaN and what does not fit become the smallest number.
inline Ints round_to_ints(Floats a) { return {_mm256_cvtps_epi32(a.v)}; }
inline Floats to_floats(Ints a) { return {_mm256_cvtepi32_ps(a.v)}; }

inline Weights split_weights(__m256i bytes) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
}
inline Weights load_weights(const int8_t* p) {
  return split_weights(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline Weights broadcast_weights(int32_t four) { return split_weights(_mm256_set1_epi32(four)); }
inline Inputs split_inputs(__m256i bytes) {
  return {_mm256_and_si256(bytes, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(bytes, 8)};
}
inline Inputs load_inputs(const uint8_t* p) {
  return split_inputs(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
}
inline Inputs load_any_inputs(const uint8_t* p) {
  return split_inputs(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
// Numbers of four bits, 0 to 15, two in a byte.
struct HalfBytes {
  Inputs low, high;
};
inline HalfBytes load_half_bytes(const uint8_t* p) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), half = _mm256_set1_epi8(15);
  return {split_inputs(_mm256_and_si256(bytes, half)),
          split_inputs(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), half))};
}
inline Inputs broadcast_inputs(int32_t four) { return split_inputs(_mm256_set1_epi32(four)); }
// The fours of lanes whose groups of `group` channels begin with lane 0.
struct FourLanes {
  __m256i v;
  explicit FourLanes(int64_t group) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    v = _mm256_srli_epi32(_mm256_and_si256(lanes, _mm256_set1_epi32(static_cast<int>(-group))), 2);
  }
  // Of 8 channels, each lane takes four `i` of its group.
  inline Inputs spread(const uint8_t* p, int64_t i) const {
    const __m256i bytes = _mm256_castsi128_si256(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    return split_inputs(
        _mm256_permutevar8x32_epi32(bytes, _mm256_add_epi32(v, _mm256_set1_epi32(static_cast<int>(i)))));
  }
};
inline Ints add_products(Ints sums, Inputs x, Weights w) {
  sums.v = _mm256_add_epi32(sums.v, _mm256_madd_epi16(x.even, w.even));
  sums.v = _mm256_add_epi32(sums.v, _mm256_madd_epi16(x.odd, w.odd));
  return sums;
}

// Up to 8 numbers of each of four rows, as fours: one of each row.
inline void interleave_fours(const uint8_t* const (&rows)[4], int64_t count, uint8_t* to) {
  __m128i row[4];
  for (int j = 0; j < 4; ++j) {
    int64_t bytes = 0;
    __builtin_memcpy(&bytes, rows[j], static_cast<size_t>(count < 8 ? count : 8));
    row[j] = _mm_cvtsi64_si128(bytes);
  }
  const __m128i first = _mm_unpacklo_epi8(row[0], row[1]), second = _mm_unpacklo_epi8(row[2], row[3]);
  _mm_store_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi16(first, second));
  _mm_store_si128(reinterpret_cast<__m128i*>(to + 16), _mm_unpackhi_epi16(first, second));
}

// Whole numbers below 2^24.
inline void store_whole(int32_t* p, Floats a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_cvtps_epi32(a.v));
}
// Registers side by side: each number plus `zero`, stopping at 0 and 255.
inline void store_u8(uint8_t* p, const Ints (&a)[2], int32_t zero) {
  const __m256i words =
      _mm256_adds_epi16(_mm256_packs_epi32(a[0].v, a[1].v), _mm256_set1_epi16(static_cast<int16_t>(zero)));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(words, words), order);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(bytes));
}

// 16 numbers of 16 bits.
struct Shorts {
  static constexpr int kWidth = 16;
  __m256i v;
};
inline Shorts fill_shorts(int16_t x) { return {_mm256_set1_epi16(x)}; }
inline Shorts load_bytes(const uint8_t* p) {
  return {_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Shorts load_shorts(const int16_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
inline Shorts broadcast_pair(const int16_t* p) {
  return {_mm256_castps_si256(_mm256_broadcast_ss(reinterpret_cast<const float*>(p)))};
}
inline void store_shorts(int16_t* p, Shorts a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v); }
inline Shorts operator+(Shorts a, Shorts b) { return {_mm256_add_epi16(a.v, b.v)}; }
inline Shorts operator-(Shorts a, Shorts b) { return {_mm256_sub_epi16(a.v, b.v)}; }
inline Shorts times_four(Shorts a) { return {_mm256_slli_epi16(a.v, 2)}; }
// sums += pairs of x times pairs of w, modulo 2^32, in the register of the sums: of 16, tiles leave one free besides
// (vector_avx2.h).
inline void add_pairs(Shorts x, Shorts w, Ints& sums) {
  const __m256i products = _mm256_madd_epi16(x.v, w.v);
  asm("vpaddd %1, %0, %0" : "+x"(sums.v) : "x"(products));
}

}  // namespace
}  // namespace lissome

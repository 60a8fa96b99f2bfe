// 16 s32 sums and the products of four u8 with four s8 that go into each, for AVX-512 with VNNI. The twin of
// vector_int8_avx2.h.
#pragma once

#include "lissome/kernel/isa/vector_avx512.h"

namespace lissome {
namespace {

struct Ints {
  __m512i v;
};
struct Weights {  // [16 outputs][4]
  __m512i v;
};
struct Inputs {  // the same four for every output
  __m512i v;
};

inline Ints zero_ints() { return {_mm512_setzero_si512()}; }
inline Ints fill_ints(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline Ints load_ints_first(const int32_t* p, int64_t count) {
  return {_mm512_maskz_loadu_epi32(first_lanes(count), p)};
}
inline Ints load_u8_first(const uint8_t* p, int64_t count) {
  return {_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_lanes(count), p))};
}
inline Ints load_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline void store_ints(int32_t* p, Ints a) { _mm512_storeu_si512(p, a.v); }
inline Ints load_ints(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline Ints multiply(Ints a, Ints b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
inline Ints operator+(Ints a, Ints b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline Ints operator-(Ints a, Ints b) { return {_mm512_sub_epi32(a.v, b.v)}; }
inline Ints shift_right(Ints a, int bits) { return {_mm512_sra_epi32(a.v, _mm_cvtsi32_si128(bits))}; }
// Half to even; NaN and what does not fit become the smallest number.
inline Ints round_to_ints(Floats a) { return {_mm512_cvtps_epi32(a.v)}; }
inline Floats to_floats(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }

inline Weights load_weights(const int8_t* p) { return {_mm512_loadu_si512(p)}; }
inline Inputs load_inputs(const uint8_t* p) { return {_mm512_load_si512(p)}; }
inline Inputs load_any_inputs(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline Inputs broadcast_inputs(int32_t four) { return {_mm512_set1_epi32(four)}; }
inline Weights broadcast_weights(int32_t four) { return {_mm512_set1_epi32(four)}; }
// Numbers of four bits, 0 to 15, two in a byte.
struct HalfBytes {
  Inputs low, high;
};
inline HalfBytes load_half_bytes(const uint8_t* p) {
  const __m512i bytes = _mm512_loadu_si512(p), half = _mm512_set1_epi8(15);
  return {{_mm512_and_si512(bytes, half)}, {_mm512_and_si512(_mm512_srli_epi16(bytes, 4), half)}};
}
// The fours of lanes whose groups of `group` channels begin with lane 0.
struct FourLanes {
  __m512i v;
  explicit FourLanes(int64_t group) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    v = _mm512_srli_epi32(_mm512_and_si512(lanes, _mm512_set1_epi32(static_cast<int>(-group))), 2);
  }
  // Of 16 channels, each lane takes four `i` of its group.
  inline Inputs spread(const uint8_t* p, int64_t i) const {
    const __m512i bytes = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return {_mm512_permutexvar_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(static_cast<int>(i))), bytes)};
  }
};
// One line of assembler: g++ 12 spills the sums of a tile around the intrinsic.
inline Ints add_products(Ints sums, Inputs x, Weights w) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums.v) : "v"(x.v), "v"(w.v));
  return sums;
}

// Up to 16 numbers of each of four rows, as fours: one of each row.
inline void interleave_fours(const uint8_t* const (&rows)[4], int64_t count, uint8_t* to) {
  const __mmask16 lanes = first_lanes(count < 16 ? count : 16);
  __m512i all = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(lanes, rows[0]));
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(lanes, rows[1]), 1);
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(lanes, rows[2]), 2);
  all = _mm512_inserti32x4(all, _mm_maskz_loadu_epi8(lanes, rows[3]), 3);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m128i turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  all = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(order, all), _mm512_broadcast_i32x4(turn));
  _mm512_store_si512(to, all);
}

// Whole numbers below 2^24.
inline void store_whole(int32_t* p, Floats a) { _mm512_storeu_si512(p, _mm512_cvtps_epi32(a.v)); }
// Registers side by side: each number plus `zero`, stopping at 0 and 255.
inline void store_u8(uint8_t* p, const Ints (&a)[2], int32_t zero) {
  const __m512i words =
      _mm512_adds_epi16(_mm512_packs_epi32(a[0].v, a[1].v), _mm512_set1_epi16(static_cast<int16_t>(zero)));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
  const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(words, words));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(bytes));
}
inline void store_u8(uint8_t* p, const Ints (&a)[4], int32_t zero) {
  const __m512i zeros = _mm512_set1_epi16(static_cast<int16_t>(zero));
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(a[0].v, a[1].v), zeros);
  const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(a[2].v, a[3].v), zeros);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second)));
}

// 32 numbers of 16 bits.
struct Shorts {
  static constexpr int kWidth = 32;
  __m512i v;
};
inline Shorts fill_shorts(int16_t x) { return {_mm512_set1_epi16(x)}; }
inline Shorts load_bytes(const uint8_t* p) {
  return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Shorts load_shorts(const int16_t* p) { return {_mm512_loadu_si512(p)}; }
inline Shorts broadcast_pair(const int16_t* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, 4);
  return {_mm512_set1_epi32(pair)};
}
inline void store_shorts(int16_t* p, Shorts a) { _mm512_storeu_si512(p, a.v); }
inline Shorts operator+(Shorts a, Shorts b) { return {_mm512_add_epi16(a.v, b.v)}; }
inline Shorts operator-(Shorts a, Shorts b) { return {_mm512_sub_epi16(a.v, b.v)}; }
inline Shorts times_four(Shorts a) { return {_mm512_slli_epi16(a.v, 2)}; }
// sums += pairs of x times pairs of w, modulo 2^32.
inline void add_pairs(Shorts x, Shorts w, Ints& sums) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sums.v) : "v"(x.v), "v"(w.v));
}

}  // namespace
}  // namespace lissome

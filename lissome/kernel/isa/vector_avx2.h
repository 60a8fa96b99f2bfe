// 8 floats in one register: the twin of vector_avx512.h for AVX2 with FMA.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lissome/kernel/isa/store_below_eight.h"

namespace lissome {
namespace {

// Tiles of products: 12 of 16 registers hold sums.
constexpr int kTileRows = 6;
constexpr int kTileVectors = 2;

struct Floats {
  static constexpr int kWidth = 8;
  __m256 v;
};

inline __m256i first_lanes(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline Floats load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline Floats load_first(const float* p, int64_t count) {
  return {count >= Floats::kWidth ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(count))};
}
inline void store(float* p, Floats a) { _mm256_storeu_ps(p, a.v); }
// Without masks: processors without AVX-512 may take a dozen cycles for a store with one, and cannot forward it to a
// load.
inline void store_first(float* p, Floats a, int64_t count) {
  if (count >= Floats::kWidth) return store(p, a);
  if (count > 0) store_below_eight(p, a.v, count);
}
inline void store_exactly(float* p, Floats a, int64_t count) { store_first(p, a, count); }
// The first `count` lanes of a, zero (or `rest`) in the others.
inline Floats first_of(Floats a, int64_t count) {
  return {_mm256_and_ps(_mm256_castsi256_ps(first_lanes(count)), a.v)};
}
inline Floats first_of_or(Floats a, int64_t count, float rest) {
  return {_mm256_blendv_ps(_mm256_set1_ps(rest), a.v, _mm256_castsi256_ps(first_lanes(count)))};
}
inline Floats fill(float x) { return {_mm256_set1_ps(x)}; }
inline Floats zeros() { return {_mm256_setzero_ps()}; }

inline Floats operator+(Floats a, Floats b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Floats operator/(Floats a, Floats b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Floats multiply_add(Floats a, Floats b, Floats c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }  // a*b + c
// sum += a * b, in the register of the sum: a tile leaves one of 16 free, and g++ moves and spills sums when it may
// choose.
inline void add_product(Floats a, Floats b, Floats& sum) {
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum.v) : "x"(a.v), "x"(b.v));
}
inline Floats subtract_product(Floats a, Floats b, Floats c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }  // c - a*b
// When x is NaN the result is NaN.
inline Floats max_with(Floats bound, Floats x) { return {_mm256_max_ps(bound.v, x.v)}; }
inline Floats min_with(Floats bound, Floats x) { return {_mm256_min_ps(bound.v, x.v)}; }
// x < 0 ? negative : other; other where x is NaN.
inline Floats select_negative(Floats x, Floats negative, Floats other) {
  return {_mm256_blendv_ps(other.v, negative.v, _mm256_cmp_ps(x.v, _mm256_setzero_ps(), _CMP_LT_OQ))};
}
inline Floats square_root(Floats a) { return {_mm256_sqrt_ps(a.v)}; }
inline Floats round_to_nearest(Floats a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Floats round_down(Floats a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
inline Floats absolute_value(Floats a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
// x where x is NaN, else other.
inline Floats keep_nan(Floats x, Floats other) {
  return {_mm256_blendv_ps(other.v, x.v, _mm256_cmp_ps(x.v, x.v, _CMP_UNORD_Q))};
}
// 1 where it holds, else 0. Nothing but unequal holds for NaN.
inline Floats make_flags(__m256 holds) { return {_mm256_and_ps(holds, _mm256_set1_ps(1))}; }
inline Floats are_equal(Floats a, Floats b) { return make_flags(_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)); }
inline Floats are_unequal(Floats a, Floats b) { return make_flags(_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)); }
inline Floats are_less(Floats a, Floats b) { return make_flags(_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)); }
inline Floats are_less_equal(Floats a, Floats b) { return make_flags(_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)); }
// x != 0 ? nonzero : other.
inline Floats select_nonzero(Floats x, Floats nonzero, Floats other) {
  return {_mm256_blendv_ps(other.v, nonzero.v, _mm256_cmp_ps(x.v, _mm256_setzero_ps(), _CMP_NEQ_UQ))};
}
// |x| = mantissa * 2^power with a mantissa in [1, 2), where x is neither zero, infinite nor NaN; `normal` is x, times
// 2^149 where it is a denormal, so that arithmetic sees its sign and whether it is zero.
struct Parts {
  Floats normal, mantissa, power;
};
inline Parts split_power(Floats x) {
  const __m256i bits = _mm256_castps_si256(x.v), magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i denormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), magnitude);
  const __m256i sign = _mm256_andnot_si256(_mm256_set1_epi32(0x7fffffff), bits);
  const __m256i grown = _mm256_or_si256(_mm256_castps_si256(_mm256_cvtepi32_ps(magnitude)), sign);
  const __m256i normal = _mm256_blendv_epi8(bits, grown, denormal);
  const __m256i exponent = _mm256_and_si256(_mm256_srli_epi32(normal, 23), _mm256_set1_epi32(0xff));
  const __m256i bias = _mm256_blendv_epi8(_mm256_set1_epi32(127), _mm256_set1_epi32(127 + 149), denormal);
  const __m256i mantissa =
      _mm256_or_si256(_mm256_and_si256(normal, _mm256_set1_epi32(0x007fffff)), _mm256_set1_epi32(0x3f800000));
  return {{_mm256_castsi256_ps(normal)},
          {_mm256_castsi256_ps(mantissa)},
          {_mm256_cvtepi32_ps(_mm256_sub_epi32(exponent, bias))}};
}
// a * 2^n for whole n in [-300, 300]; overflows to infinity, underflows to zero. In two halves, each a normal number.
inline Floats scale_by_power(Floats a, Floats n) {
  const __m256i exponent = _mm256_cvtps_epi32(n.v);
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const __m256i rest = _mm256_sub_epi32(exponent, half);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  const __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
  return {_mm256_mul_ps(_mm256_mul_ps(a.v, first), second)};
}
inline float sum_lanes(Floats a) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  half = _mm_add_ss(half, _mm_shuffle_ps(half, half, 1));
  return _mm_cvtss_f32(half);
}
inline float max_lanes(Floats a) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  half = _mm_max_ss(half, _mm_shuffle_ps(half, half, 1));
  return _mm_cvtss_f32(half);
}

}  // namespace
}  // namespace lissome

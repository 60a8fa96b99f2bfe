// 16 floats in one register. The twin of vector_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lissome/kernel/isa/store_below_eight.h"

namespace lissome {
namespace {

// Tiles of products: 24 of 32 registers hold sums.
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;

struct Floats {
  static constexpr int kWidth = 16;
  __m512 v;
};

inline __mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

inline Floats load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline Floats load_first(const float* p, int64_t count) { return {_mm512_maskz_loadu_ps(first_lanes(count), p)}; }
inline void store(float* p, Floats a) { _mm512_storeu_ps(p, a.v); }
inline void store_first(float* p, Floats a, int64_t count) { _mm512_mask_storeu_ps(p, first_lanes(count), a.v); }
// The same without a mask, for a store that is followed by loads of the bytes beside it.
inline void store_exactly(float* p, Floats a, int64_t count) {
  if (count >= Floats::kWidth) return store(p, a);
  __m256 half = _mm512_castps512_ps256(a.v);
  if (count & 8) {
    _mm256_storeu_ps(p, half);
    half = _mm512_extractf32x8_ps(a.v, 1), p += 8;
  }
  store_below_eight(p, half, count);
}
// The first `count` lanes of a, zero (or `rest`) in the others.
inline Floats first_of(Floats a, int64_t count) { return {_mm512_maskz_mov_ps(first_lanes(count), a.v)}; }
inline Floats first_of_or(Floats a, int64_t count, float rest) {
  return {_mm512_mask_blend_ps(first_lanes(count), _mm512_set1_ps(rest), a.v)};
}
inline Floats fill(float x) { return {_mm512_set1_ps(x)}; }
inline Floats zeros() { return {_mm512_setzero_ps()}; }

inline Floats operator+(Floats a, Floats b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Floats operator-(Floats a, Floats b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Floats operator*(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Floats operator/(Floats a, Floats b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Floats multiply_add(Floats a, Floats b, Floats c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }  // a*b + c
inline void add_product(Floats a, Floats b, Floats& sum) { sum = multiply_add(a, b, sum); }            // sum += a * b
inline Floats subtract_product(Floats a, Floats b, Floats c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }  // c - a*b
// When x is NaN the result is NaN.
inline Floats max_with(Floats bound, Floats x) { return {_mm512_max_ps(bound.v, x.v)}; }
inline Floats min_with(Floats bound, Floats x) { return {_mm512_min_ps(bound.v, x.v)}; }
// x < 0 ? negative : other; other where x is NaN.
inline Floats select_negative(Floats x, Floats negative, Floats other) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, _mm512_setzero_ps(), _CMP_LT_OQ), other.v, negative.v)};
}
inline Floats square_root(Floats a) { return {_mm512_sqrt_ps(a.v)}; }
inline Floats round_to_nearest(Floats a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Floats round_down(Floats a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
inline Floats absolute_value(Floats a) { return {_mm512_abs_ps(a.v)}; }
// x where x is NaN, else other.
inline Floats keep_nan(Floats x, Floats other) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q), other.v, x.v)};
}
// 1 where it holds, else 0. Nothing but unequal holds for NaN.
inline Floats make_flags(__mmask16 holds) { return {_mm512_maskz_mov_ps(holds, _mm512_set1_ps(1))}; }
inline Floats are_equal(Floats a, Floats b) { return make_flags(_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)); }
inline Floats are_unequal(Floats a, Floats b) { return make_flags(_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)); }
inline Floats are_less(Floats a, Floats b) { return make_flags(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)); }
inline Floats are_less_equal(Floats a, Floats b) { return make_flags(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)); }
// x != 0 ? nonzero : other.
inline Floats select_nonzero(Floats x, Floats nonzero, Floats other) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, _mm512_setzero_ps(), _CMP_NEQ_UQ), other.v, nonzero.v)};
}
// |x| = mantissa * 2^power with a mantissa in [1, 2), where x is neither zero, infinite nor NaN; `normal` is x, times
// 2^149 where it is a denormal, so that arithmetic sees its sign and whether it is zero.
struct Parts {
  Floats normal, mantissa, power;
};
inline Parts split_power(Floats x) {
  const __m512i bits = _mm512_castps_si512(x.v), magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
  const __mmask16 denormal = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(0x00800000));
  const __m512i sign = _mm512_andnot_si512(_mm512_set1_epi32(0x7fffffff), bits);
  const __m512i grown = _mm512_or_si512(_mm512_castps_si512(_mm512_cvtepi32_ps(magnitude)), sign);
  const __m512i normal = _mm512_mask_blend_epi32(denormal, bits, grown);
  const __m512i exponent = _mm512_and_si512(_mm512_srli_epi32(normal, 23), _mm512_set1_epi32(0xff));
  const __m512i bias = _mm512_mask_blend_epi32(denormal, _mm512_set1_epi32(127), _mm512_set1_epi32(127 + 149));
  const __m512i mantissa =
      _mm512_or_si512(_mm512_and_si512(normal, _mm512_set1_epi32(0x007fffff)), _mm512_set1_epi32(0x3f800000));
  return {{_mm512_castsi512_ps(normal)},
          {_mm512_castsi512_ps(mantissa)},
          {_mm512_cvtepi32_ps(_mm512_sub_epi32(exponent, bias))}};
}
// a * 2^n for whole n; overflows to infinity, underflows to zero.
inline Floats scale_by_power(Floats a, Floats n) { return {_mm512_scalef_ps(a.v, n.v)}; }
inline float sum_lanes(Floats a) { return _mm512_reduce_add_ps(a.v); }
inline float max_lanes(Floats a) { return _mm512_reduce_max_ps(a.v); }

}  // namespace
}  // namespace lissome

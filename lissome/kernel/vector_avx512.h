// 16 floats in one register. The twin of vector_avx2.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

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
// a * 2^n for whole n; overflows to infinity, underflows to zero.
inline Floats scale_by_power(Floats a, Floats n) { return {_mm512_scalef_ps(a.v, n.v)}; }
inline float sum_lanes(Floats a) { return _mm512_reduce_add_ps(a.v); }
inline float max_lanes(Floats a) { return _mm512_reduce_max_ps(a.v); }

}  // namespace
}  // namespace lissome

// What follows the sums of a block on tile registers: scaled, activated and perhaps quantized again, two registers a
// row. A block's epilogue runs a few rows at a time between the products of the next block: the vector units have
// nothing else to do meanwhile.
#pragma once

#include "lissome/kernel/vector.h"

#include "lissome/kernel/activation_body.h"
#include "lissome/kernel/linear_u8s8.h"

namespace lissome {
namespace {

constexpr int64_t kBlockRows = 32, kTileSide = 16;

// What is known of a panel's outputs. weight_sums lie in two parts, 128 times the second plus the first, so that one
// product of pairs of s16 takes the zero point out of the sums.
struct PanelNumbers {
  int64_t output, outputs;
  __mmask16 masks[2];
  __m512 multiplier[2], bias[2];
  __m512i sums[2];
};

LISSOME_INLINE void read_panel(const OutputU8S8& from, int64_t output, int64_t outputs, PanelNumbers& panel) {
  panel.output = output, panel.outputs = outputs;
  for (int i = 0; i < 2; ++i) {
    const int64_t left = outputs - 16 * i, at = output + 16 * i;
    panel.masks[i] = left >= 16 ? 0xffff : left > 0 ? first_lanes(left) : 0;
    panel.multiplier[i] = _mm512_maskz_loadu_ps(panel.masks[i], from.multiplier + at);
    panel.bias[i] = from.bias ? _mm512_maskz_loadu_ps(panel.masks[i], from.bias + at) : _mm512_setzero_ps();
    const __m512i sums = _mm512_maskz_loadu_epi32(panel.masks[i], from.weight_sums + at);
    const __m512i low = _mm512_and_si512(sums, _mm512_set1_epi32(127)), high = _mm512_srai_epi32(sums, 7);
    panel.sums[i] = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
}

// The pair of s16 that goes with PanelNumbers::sums.
LISSOME_INLINE __m512i pair_zero(int32_t zero) {
  const uint32_t low = static_cast<uint32_t>(-zero) & 0xffff, high = static_cast<uint32_t>(-zero * 128) << 16;
  return _mm512_set1_epi32(static_cast<int32_t>(high | low));
}

LISSOME_INLINE void store_two_u8(uint8_t* y, Floats left, Floats right, const OutputU8S8& output, __mmask32 mask) {
  // Whole numbers in s32 stop at both ends of s16, then of u8: below zero and for NaN (the smallest s32) that is 0.
  const Floats inverse = fill(output.out_inverse), high = fill(static_cast<float>(255 - output.out_zero));
  const __m512i words = _mm512_packs_epi32(_mm512_cvtps_epi32(min_with(high, left * inverse).v),
                                           _mm512_cvtps_epi32(min_with(high, right * inverse).v));
  const __m512i shifted = _mm512_adds_epi16(words, _mm512_set1_epi16(static_cast<int16_t>(output.out_zero)));
  const __m512i bytes = _mm512_packus_epi16(shifted, shifted);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
  _mm256_mask_storeu_epi8(y, mask, _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, bytes)));
}

LISSOME_INLINE Floats add_residual_u8(Floats y, const uint8_t* p, __mmask16 mask, const OutputU8S8& output) {
  const __m512i wide = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, p));
  const __m512i shifted = _mm512_sub_epi32(wide, _mm512_set1_epi32(output.residual_zero));
  return multiply_add(Floats{_mm512_cvtepi32_ps(shifted)}, fill(output.residual_scale), y);
}

template <typename Function>
LISSOME_INLINE void finish_two(const OutputU8S8& output, const PanelNumbers& panel, const int32_t* sums, int64_t row,
                               const Function& activation) {
  const bool scaled = output.row_scales != nullptr;
  const __m512i zero = pair_zero(scaled ? output.row_zeros[row] : output.x_zero);
  Floats y[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512i sum = _mm512_dpwssd_epi32(_mm512_load_si512(sums + 16 * i), zero, panel.sums[i]);
    __m512 multiplier = panel.multiplier[i];
    if (scaled) multiplier = _mm512_mul_ps(multiplier, _mm512_set1_ps(output.row_scales[row]));
    y[i] = {_mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), multiplier, panel.bias[i])};
  }
  const int64_t from = row * output.residual_stride + panel.output;
  if (output.residual != nullptr) {
    for (int i = 0; i < 2; ++i)
      y[i] = y[i] + Floats{_mm512_maskz_loadu_ps(panel.masks[i], output.residual + from + 16 * i)};
  } else if (output.residual_u8 != nullptr) {
    for (int i = 0; i < 2; ++i)
      y[i] = add_residual_u8(y[i], output.residual_u8 + from + 16 * i, panel.masks[i], output);
  }
  y[0] = activation(y[0]), y[1] = activation(y[1]);
  const int64_t at = row * output.y_stride + panel.output;
  if (output.out_inverse != 0) {
    const auto mask = static_cast<__mmask32>(panel.masks[0] | static_cast<uint32_t>(panel.masks[1]) << 16);
    return store_two_u8(static_cast<uint8_t*>(output.y) + at, y[0], y[1], output, mask);
  }
  float* to = static_cast<float*>(output.y) + at;
  _mm512_mask_storeu_ps(to, panel.masks[0], y[0].v);
  _mm512_mask_storeu_ps(to + 16, panel.masks[1], y[1].v);
}

// Which rows of the result the rows of a block are: all of them while `column` runs to `width`, none from there on to
// `row_outputs`.
struct BlockPlace {
  int64_t row = 0, column = 0;
  int64_t width = INT64_MAX, row_outputs = INT64_MAX;
};

struct PendingRows {
  const OutputU8S8& output;
  void (*finish)(PendingRows& pending, int64_t count);  // up to that many more rows
  const PanelNumbers* panel = nullptr;
  const int32_t* sums = nullptr;
  BlockPlace place = {};
  int64_t next = 0, rows = 0;

  LISSOME_INLINE void advance(int64_t count) {
    if (next < rows) finish(*this, count);
  }
  LISSOME_INLINE void start(const PanelNumbers& numbers, const int32_t* block, BlockPlace at, int64_t block_rows) {
    panel = &numbers, sums = block, place = at, next = 0, rows = block_rows;
  }
};

template <typename Function>
LISSOME_INLINE void finish_some(PendingRows& p, int64_t count, const Function& activation) {
  const int64_t end = p.next + count < p.rows ? p.next + count : p.rows;
  for (; p.next < end; ++p.next) {
    if (p.place.column < p.place.width) {
      finish_two(p.output, *p.panel, p.sums + p.next * kU8S8Panel, p.place.row++, activation);
    }
    if (++p.place.column == p.place.row_outputs) p.place.column = 0;
  }
}

// With the activation as a function that the compiler sees through.
void finish_plain(PendingRows& pending, int64_t count) {
  finish_some(pending, count, [](Floats x) { return x; });
}
void finish_relu(PendingRows& pending, int64_t count) {
  finish_some(pending, count, [](Floats x) { return max_with(zeros(), x); });
}
void finish_gelu(PendingRows& pending, int64_t count) {
  finish_some(pending, count, [](Floats x) { return activate_vector({Activation::gelu, 0, 0}, x); });
}
void finish_other(PendingRows& pending, int64_t count) {
  finish_some(pending, count, [&](Floats x) { return activate_vector(pending.output.epilogue, x); });
}

inline auto choose_finish(const OutputU8S8& output) {
  switch (output.epilogue.activation) {
    case Activation::none: return finish_plain;
    // Bytes stop at their zero point by themselves.
    case Activation::relu: return output.out_inverse != 0 && output.out_zero == 0 ? finish_plain : finish_relu;
    case Activation::gelu: return finish_gelu;
    default: return finish_other;
  }
}

}  // namespace
}  // namespace lissome

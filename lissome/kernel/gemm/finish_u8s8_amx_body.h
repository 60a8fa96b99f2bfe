// What follows the sums of a block on tile registers: scaled, activated and perhaps quantized again, two registers a
// row. A block's epilogue runs a few rows at a time between the products of the next block: the vector units have
// nothing else to do meanwhile.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/runs_u8s8.h"
#include "lissome/kernel/isa/tiles_u8s8.h"

namespace lissome {
namespace {

// What is known of a panel's outputs. weight_sums lie in two parts, 128 times the second plus the first, so that one
// product of pairs of s16 takes the zero point out of the sums.
struct PanelNumbers {
  int64_t output, outputs;
  int64_t y_offset;  // of the first of them in y
  __mmask16 masks[2];
  __m512 multiplier[2], bias[2];
  __m512i sums[2];
};

LISSOME_INLINE void read_panel(const OutputU8S8& from, int64_t output, int64_t outputs, PanelNumbers& panel) {
  panel.output = output, panel.outputs = outputs, panel.y_offset = spread_output(from, output);
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
  const uint32_t taken = 0u - static_cast<uint32_t>(zero), low = taken & 0xffff, high = taken * 128 << 16;
  return _mm512_set1_epi32(static_cast<int32_t>(high | low));
}

// What a row needs: anything; u8 from u8, without scales of rows and residuals of f32; the same with zero points of 0
// and numbers that no s32 overflows from, which is most of a convolutional network.
enum class Finish : uint8_t { any, bytes, plain_bytes };

// One row of a panel: two registers of sums, on their way to the result. Tiles keep the load ports and the front end
// busy, so whatever does not change from row to row is read once, into registers.
template <Finish Kind, typename Function>
struct RowFinisher {
  static constexpr bool kBytes = Kind != Finish::any, kPlain = Kind == Finish::plain_bytes;
  const OutputU8S8 output;
  const PanelNumbers panel;
  const Function activation;
  const __mmask32 mask = static_cast<__mmask32>(panel.masks[0] | static_cast<uint32_t>(panel.masks[1]) << 16);
  const __m512i zero = pair_zero(output.x_zero);
  const __m512i residual_zero = _mm512_set1_epi32(output.residual_zero);
  const Floats inverse = fill(output.out_inverse), highest = fill(static_cast<float>(255 - output.out_zero));
  const Floats residual_scale = fill(output.residual_scale);
  const __m512i out_zero = _mm512_set1_epi16(static_cast<int16_t>(output.out_zero));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);

  LISSOME_INLINE Floats scale(const int32_t* sums, int i, int64_t row) const {
    if (!kBytes && output.row_scales != nullptr) {
      const __m512i taken =
          _mm512_dpwssd_epi32(_mm512_load_si512(sums + 16 * i), pair_zero(output.row_zeros[row]), panel.sums[i]);
      const __m512 multiplier = _mm512_mul_ps(panel.multiplier[i], _mm512_set1_ps(output.row_scales[row]));
      return {_mm512_fmadd_ps(_mm512_cvtepi32_ps(taken), multiplier, panel.bias[i])};
    }
    __m512i taken = _mm512_load_si512(sums + 16 * i);
    if (!kPlain) taken = _mm512_dpwssd_epi32(taken, zero, panel.sums[i]);
    return {_mm512_fmadd_ps(_mm512_cvtepi32_ps(taken), panel.multiplier[i], panel.bias[i])};
  }
  LISSOME_INLINE Floats add_residual(Floats y, int i, int64_t row) const {
    const int64_t from = row * output.residual_stride + panel.output + 16 * i;
    if (output.residual_u8 != nullptr) {
      __m512i steps = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(panel.masks[i], output.residual_u8 + from));
      if (!kPlain) steps = _mm512_sub_epi32(steps, residual_zero);
      return multiply_add(Floats{_mm512_cvtepi32_ps(steps)}, residual_scale, y);
    }
    if (!kBytes && output.residual_bf16 != nullptr) {
      const __m256i bits = _mm256_maskz_loadu_epi16(panel.masks[i], output.residual_bf16 + from);
      return y + widen_lanes(bits);
    }
    if (kBytes || output.residual == nullptr) return y;
    return y + Floats{_mm512_maskz_loadu_ps(panel.masks[i], output.residual + from)};
  }
  // Whole numbers in s32 stop at both ends of s16, then of u8: below zero and for NaN (the smallest s32) that is 0.
  LISSOME_INLINE __m512i to_whole(Floats y) const {
    const Floats t = y * inverse;
    return _mm512_cvtps_epi32(kPlain ? t.v : min_with(highest, t).v);
  }

  LISSOME_INLINE void run(const int32_t* sums, int64_t row) const {
    const Floats left = activation(add_residual(scale(sums, 0, row), 0, row));
    // Sixteen outputs, as the first layers of small networks have, take half of the panel.
    const Floats right = panel.masks[1] == 0 ? zeros() : activation(add_residual(scale(sums, 1, row), 1, row));
    const int64_t at = row * output.y_stride + panel.y_offset;
    if (kBytes || output.out_inverse != 0) {
      __m512i words = _mm512_packs_epi32(to_whole(left), to_whole(right));
      if (!kPlain) words = _mm512_adds_epi16(words, out_zero);
      const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(words, words));
      return _mm256_mask_storeu_epi8(static_cast<uint8_t*>(output.y) + at, mask, _mm512_castsi512_si256(bytes));
    }
    if (output.narrows) {
      const auto pairs = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right.v, left.v));
      return _mm512_mask_storeu_epi16(static_cast<uint16_t*>(output.y) + at, mask, pairs);
    }
    float* to = static_cast<float*>(output.y) + at;
    _mm512_mask_storeu_ps(to, panel.masks[0], left.v);
    _mm512_mask_storeu_ps(to + 16, panel.masks[1], right.v);
  }
};

// Which rows of the result the rows of a block are, from `first` on; -1: none.
struct BlockRows {
  int64_t first = 0;
  int32_t row[kBlockRows];
};

// A block whose sums are done. The stretches of its rows are finished without state from one to the next: a processor
// that had to read what it stored just before would wait for the tiles between.
struct PendingBlock {
  const OutputU8S8& output;
  void (*finish)(const PendingBlock& block, int64_t begin, int64_t end);
  const PanelNumbers* panel = nullptr;
  const int32_t* sums = nullptr;
  const BlockRows* rows = nullptr;
  int64_t count = 0;
};

template <Finish Kind, typename Function>
LISSOME_INLINE void finish_stretch(const PendingBlock& block, int64_t begin, int64_t end, const Function& activation) {
  const RowFinisher<Kind, Function> finisher{block.output, *block.panel, activation};
  const int32_t* sums = block.sums + begin * kU8S8Panel;
  const BlockRows& rows = *block.rows;
  for (int64_t i = begin; i < end; ++i, sums += kU8S8Panel) {
    if (rows.row[i] >= 0) finisher.run(sums, rows.first + rows.row[i]);
  }
}

// With the activation as a function that the compiler sees through.
void finish_plain_bytes(const PendingBlock& block, int64_t begin, int64_t end) {
  finish_stretch<Finish::plain_bytes>(block, begin, end, [](Floats x) { return x; });
}
void finish_bytes(const PendingBlock& block, int64_t begin, int64_t end) {
  finish_stretch<Finish::bytes>(block, begin, end, [](Floats x) { return x; });
}
void finish_relu_bytes(const PendingBlock& block, int64_t begin, int64_t end) {
  finish_stretch<Finish::bytes>(block, begin, end, [](Floats x) { return max_with(zeros(), x); });
}
void finish_plain(const PendingBlock& block, int64_t begin, int64_t end) {
  finish_stretch<Finish::any>(block, begin, end, [](Floats x) { return x; });
}
void finish_relu(const PendingBlock& block, int64_t begin, int64_t end) {
  finish_stretch<Finish::any>(block, begin, end, [](Floats x) { return max_with(zeros(), x); });
}
template <Activation Kind>
void finish_activated(const PendingBlock& block, int64_t begin, int64_t end) {
  finish_stretch<Finish::any>(block, begin, end, [](Floats x) { return activate_vector({Kind, 0, 0}, x); });
}
void finish_other(const PendingBlock& block, int64_t begin, int64_t end) {
  const Epilogue epilogue = block.output.epilogue;
  finish_stretch<Finish::any>(block, begin, end, [epilogue](Floats x) { return activate_vector(epilogue, x); });
}

// Whether every result, in steps of its scale, stays inside of s32, whatever the inputs are.
bool is_bounded(const OutputU8S8& output, int64_t outputs, int64_t products) {
  float multiplier = 0, bias = 0;
  for (int64_t n = 0; n < outputs; ++n) {
    const float m = __builtin_fabsf(output.multiplier[n]), b = output.bias ? __builtin_fabsf(output.bias[n]) : 0;
    multiplier = multiplier > m ? multiplier : m;
    bias = bias > b ? bias : b;
  }
  const float largest = multiplier * 255 * 128 * static_cast<float>(products) + bias + 255 * output.residual_scale;
  return largest * output.out_inverse < 1e9f;
}

auto choose_finish(const OutputU8S8& output, int64_t outputs, int64_t products) {
  const bool bytes = output.out_inverse != 0 && output.row_scales == nullptr && output.residual == nullptr &&
                     output.residual_bf16 == nullptr;
  const bool plain = bytes && output.x_zero == 0 && output.out_zero == 0 &&
                     (output.residual_u8 == nullptr || output.residual_zero == 0) &&
                     is_bounded(output, outputs, products);
  switch (output.epilogue.activation) {
    case Activation::none: return plain ? finish_plain_bytes : bytes ? finish_bytes : finish_plain;
    // Bytes stop at their zero point by themselves.
    case Activation::relu:
      if (!bytes) return finish_relu;
      return plain ? finish_plain_bytes : output.out_zero == 0 ? finish_bytes : finish_relu_bytes;
    case Activation::gelu: return finish_activated<Activation::gelu>;
    case Activation::silu: return finish_activated<Activation::silu>;
    case Activation::hardswish: return finish_activated<Activation::hardswish>;
    default: return finish_other;
  }
}

}  // namespace
}  // namespace lissome

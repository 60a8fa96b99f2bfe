// Packs the weight of a bf16 convolution with AVX-512 BF16. All taps of 16 outputs and 32 inputs lie in few runs of the
// weight: these are turned in squares of 16 numbers, so that outputs lie across registers, and rounded. Where inputs
// are no whole steps, or taps many, the portable form's loops do.
#pragma once

#include "lissome/kernel/conv/kernel_versions.h"
#include "lissome/kernel/conv/pack_conv_bf16.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/vector_bf16.h"
#include "lissome/kernel/move/transpose_body.h"

namespace lissome {
namespace {

constexpr int64_t kMostPackedTaps = 16;

// `columns` numbers, whole registers, of 16 rows that lie `stride` apart, as columns of 16.
template <typename T>
LISSOME_INLINE void turn_rows(const T* from, int64_t stride, int64_t rows, int64_t columns, float* to) {
  for (int64_t j = 0; j < columns; j += 16) {
    Floats lines[16];
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i) lines[i] = i < rows ? load(from + i * stride + j) : zeros();
    transpose(lines);
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i) store(to + (j + i) * 16, lines[i]);
  }
}

// 16 outputs and one block of 32 inputs, in all taps of the piece; `to` is where its first tap goes.
template <typename T>
struct PackedSquares {
  const PieceWeight& from;
  const T* weight;  // of the first output and input
  int64_t outputs;  // at most 16
  uint16_t* to;

  uint16_t* find_tap(int64_t tap) const { return to + tap * kBf16Panel * kBf16Step; }

  // Rows of outputs: each holds the taps of its inputs.
  LISSOME_INLINE void pack_forward(float* turned) const {
    const int64_t all_taps = from.all_taps();
    turn_rows(weight, from.output_stride(), outputs, kBf16Step * all_taps, turned);
    for (int64_t tap = 0; tap < from.piece.taps(); ++tap) {
      const float* column = turned + from.find_weight(tap * kBf16Step) * 16;
      for (int64_t pair = 0; pair < kBf16Step / 2; ++pair) {
        const __m512i even = _mm512_cvtepu16_epi32(narrow_lanes(load(column + 2 * pair * all_taps * 16)));
        const __m512i odd = _mm512_cvtepu16_epi32(narrow_lanes(load(column + (2 * pair + 1) * all_taps * 16)));
        _mm512_storeu_si512(find_tap(tap) + pair * 32, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
      }
    }
  }

  LISSOME_INLINE void clear() const {
    for (int64_t tap = 0; tap < from.piece.taps(); ++tap) {
      for (int64_t i = 0; i < 512; i += 32) _mm512_storeu_si512(find_tap(tap) + i, _mm512_setzero_si512());
    }
  }

  // Rows of inputs: each holds the taps of its outputs.
  // Outputs come in whole registers there: all or none.
  LISSOME_INLINE void pack_transposed(float* turned) const {
    if (outputs == 0) return clear();
    const int64_t columns = 16 * from.all_taps();
    for (int64_t half = 0; half < 2; ++half) {
      turn_rows(weight + half * 16 * from.input_stride(), from.input_stride(), 16, columns,
                turned + half * columns * 16);
    }
    for (int64_t tap = 0; tap < from.piece.taps(); ++tap) {
      const float* column = turned + from.find_weight(tap * kBf16Step) * 16;
      Floats pairs[16];
#pragma GCC unroll 16
      for (int64_t n = 0; n < 16; ++n) {
        const float* inputs = column + n * from.all_taps() * 16;
        pairs[n] = {reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(load(inputs + columns * 16).v, load(inputs).v))};
      }
      transpose(pairs);
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < 16; ++pair) {
        _mm512_storeu_si512(find_tap(tap) + pair * 32, _mm512_castps_si512(pairs[pair].v));
      }
    }
  }
};

template <typename T>
LISSOME_INLINE void pack_pieces(const PackConvBf16Call& call, const T* weight, int part, int parts) {
  alignas(64) float turned[kBf16Step * kMostPackedTaps * 16];
  const ConvBf16Call conv = describe_packed(call);
  for_each_piece(conv, [&](const ConvPiece& piece, const Phase& phase) {
    const PieceWeight from = {conv, piece, phase};
    if (piece.taps() == 0) return;
    const int64_t blocks = piece.inputs / kBf16Step, squares = (piece.outputs + kBf16Panel - 1) / kBf16Panel * 2;
    const Range range = split_evenly(squares * blocks, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t square = i / blocks, block = i % blocks, left = piece.outputs - square * 16;
      uint16_t* to = call.packed + piece.weight_offset + square % 2 * 512 +
                     (square / 2 * from.steps() + block * piece.taps()) * kBf16Panel * kBf16Step;
      const T* first =
          weight + from.first() + square * 16 * from.output_stride() + block * kBf16Step * from.input_stride();
      const PackedSquares<T> squares_of = {from, first, left < 16 ? left < 0 ? 0 : left : 16, to};
      if (call.transposed) {
        squares_of.pack_transposed(turned);
      } else {
        squares_of.pack_forward(turned);
      }
    }
  });
}

// Whether all runs are whole registers.
inline bool turns_whole(const PackConvBf16Call& call) {
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  return call.in_channels / call.groups % kBf16Step == 0 && taps <= kMostPackedTaps &&
         (!call.transposed || call.out_channels / call.groups % 16 == 0);
}

LISSOME_INLINE void run_pack_conv_bf16(const PackConvBf16Call& call, int part, int parts) {
  if (!turns_whole(call)) return pack_conv_bf16_portable(call, part, parts);
  if (call.weight) {
    pack_pieces(call, call.weight, part, parts);
  } else {
    pack_pieces(call, call.wide_weight, part, parts);
  }
}

}  // namespace
}  // namespace lissome

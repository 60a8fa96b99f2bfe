// What the packings of bf16 convolutions share: where the inputs of a piece lie in the weight. Static: see split.h.
#pragma once

#include "lissome/kernel/conv/conv_bf16.h"
#include "lissome/kernel/conv/conv_bf16_pieces.h"

namespace lissome {
namespace {

// One piece of a convolution: where its inputs lie in the weight.
struct PieceWeight {
  const ConvBf16Call& conv;
  const ConvPiece& piece;
  const Phase& phase;  // when transposed

  int64_t steps() const { return count_bf16_steps(piece.inputs * piece.taps()); }
  int64_t all_taps() const { return conv.window.kernel_height * conv.window.kernel_width; }
  int64_t output_stride() const { return conv.transposed ? all_taps() : piece.inputs * all_taps(); }
  int64_t input_stride() const { return conv.transposed ? piece.outputs * all_taps() : all_taps(); }
  // Where the weight of the first output and input of the piece stands.
  int64_t first() const { return conv.transposed ? piece.x_offset * input_stride() : piece.y_offset * output_stride(); }

  // From the weight of an output's first input and tap to that of packed input k; -1 beyond the last.
  int64_t find_weight(int64_t k) const {
    if (k >= piece.inputs * piece.taps()) return -1;
    const int64_t run = piece.run(), rest = k % (run * piece.taps()), tap = rest / run;
    int64_t h = tap / piece.window.kernel_width, v = tap % piece.window.kernel_width;
    if (conv.transposed) {
      h = phase.rows.find_tap(h);
      v = phase.columns.find_tap(v);
    }
    const int64_t input = k / (run * piece.taps()) * run + rest % run;
    return input * input_stride() + h * conv.window.kernel_width + v;
  }
};

inline ConvBf16Call describe_packed(const PackConvBf16Call& call) {
  ConvBf16Call conv;
  conv.in_channels = call.in_channels, conv.out_channels = call.out_channels, conv.groups = call.groups;
  conv.window = call.window, conv.transposed = call.transposed;
  return conv;
}

}  // namespace
}  // namespace lissome

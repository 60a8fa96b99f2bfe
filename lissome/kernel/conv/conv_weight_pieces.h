// How the weight gradient of a convolution is cut: a unit is up to 64 outputs, a block of inputs and a share of the
// pixels, which go by in chunks whose dy and x are copied side by side. Static: see split.h.
#pragma once

#include "lissome/kernel/conv/conv_gradient.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Pixels of a chunk: dy of 64 channels stays in the second-level cache, x of a block in the first.
constexpr int64_t kWeightPixels = 256;

struct ConvWeightPieces {
  int64_t inputs, outputs;                // of a group
  int64_t panels, blocks, block;          // of outputs; of inputs, and inputs of one
  int64_t images, lines;                  // of dy, of a chunk
  int64_t image_chunks, chunks;           // of an image, 1 where a chunk has several; of all
  int64_t band_lines, pitch;              // lines of x for those of one image, and pixels of a line, with padding
  int64_t dy_size, band_size, sums_size;  // floats of scratch, or pairs of bf16
};

inline int64_t divide_up(int64_t count, int64_t by) { return (count + by - 1) / by; }
inline int64_t round_up(int64_t count, int64_t unit) { return divide_up(count, unit) * unit; }

// Inputs of a block, of so many in all.
inline int64_t find_weight_block(int64_t inputs, int64_t taps) {
  const int64_t blocks = divide_up(inputs, taps >= 9 ? 16 : taps >= 4 ? 32 : 64);
  return blocks == 1 ? inputs : round_up(divide_up(inputs, blocks), 16);
}

template <typename T>
inline ConvWeightPieces find_weight_pieces(const ConvWeightCallOf<T>& call) {
  const Window& w = call.window;
  const int64_t taps = w.kernel_height * w.kernel_width;
  ConvWeightPieces p;
  p.inputs = call.in_channels / call.groups, p.outputs = call.out_channels / call.groups;
  p.panels = divide_up(p.outputs, kLinearPanel);
  p.block = find_weight_block(p.inputs, taps);
  p.blocks = divide_up(p.inputs, p.block);
  const int64_t pixels = w.out_height * w.out_width;
  if (pixels > kWeightPixels) {
    const int64_t fitting = kWeightPixels / w.out_width;
    p.lines = divide_up(w.out_height, divide_up(w.out_height, fitting > 0 ? fitting : 1));
    p.images = 1;
  } else {
    const int64_t fitting = pixels > 0 ? kWeightPixels / pixels : 1;
    p.lines = w.out_height;
    p.images = w.batch > 0 ? divide_up(w.batch, divide_up(w.batch, fitting)) : 1;
  }
  p.image_chunks = divide_up(w.out_height, p.lines);
  p.chunks = p.image_chunks * divide_up(w.batch, p.images);
  p.band_lines = (p.lines - 1) * w.stride_height + (w.kernel_height - 1) * w.dilation_height + 1;
  p.pitch = (w.out_width - 1) * w.stride_width + (w.kernel_width - 1) * w.dilation_width + 1;
  p.dy_size = p.images * p.lines * w.out_width * kLinearPanel;
  p.band_size = round_up(p.images * p.band_lines * p.pitch * p.block, 16);
  p.sums_size = taps * p.block * kLinearPanel;
  return p;
}

}  // namespace
}  // namespace lissome

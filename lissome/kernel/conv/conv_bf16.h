// Convolution of channels-last bf16 values, plain or transposed; the window as in conv_f32.h, sums and epilogue in f32.
//
// A transposed convolution is as many plain ones as its stride has pixels: each pixel of y meets those taps alone that
// fall on it, and those are the same for all pixels that lie a stride apart. So both are a list of pieces (see
// conv_bf16_pieces.h): a group of channels, in one of those phases.
//
// Packed weight: one block a piece, as linear_bf16.h packs [outputs][inputs of all taps]. These are in the order
// [taps][inputs], or where inputs are whole steps of 32 [inputs / 32][taps][32]: so the taps of a step find x in the
// first cache.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"
#include "lissome/kernel/gemm/linear_bf16.h"

namespace lissome {

struct ConvBf16Call : OutputBf16 {
  const uint16_t* x = nullptr;       // [batch, height, width, in_channels]
  const uint16_t* weight = nullptr;  // packed, see above
  std::byte* scratch = nullptr;      // parts times scratch_part bytes, aligned to 64
  int64_t scratch_part = 0;          // conv_bf16_scratch()
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  Window window;
  bool transposed = false;
  // First layers: x is [batch, in_channels, height, width], bf16 or, with x null, f32; one group, fewer than 32
  // channels.
  bool planes = false;
  const float* wide_planes = nullptr;
};

int64_t packed_conv_bf16_size(const ConvBf16Call& call);  // elements
// `weight` is [out_channels, in_channels / groups, kernel_height, kernel_width], or when transposed
// [in_channels, out_channels / groups, kernel_height, kernel_width], dense in row order.
void pack_conv_bf16(const ConvBf16Call& call, const uint16_t* weight, uint16_t* packed);

// The same as a step, for weights that change from call to call; of f32 they are rounded.
struct PackConvBf16Call {
  const uint16_t* weight = nullptr;
  const float* wide_weight = nullptr;  // where weight is null
  uint16_t* packed = nullptr;
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  bool transposed = false;
  Window window;  // kernel, stride, padding and dilation
};
int64_t conv_bf16_scratch(const ConvBf16Call& call);  // bytes a part

}  // namespace lissome

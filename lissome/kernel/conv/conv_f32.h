// 2-D convolution of channels-last values (1-D with height 1), as a product over the taps of the kernel window:
//   y[n, oh, ow, oc] = act(bias[oc] + sum over kh, kw, ic of
//                          x[n, oh*stride_h - pad_h + kh*dilation_h, ow*..., g*IC + ic] * weight[oc][ic][kh][kw])
// Outside of x lie zeros. Groups are done one after the other; depthwise has a kernel of its own.
//
// Packed weight, one block a group: panels of 64 outputs, each [kh * kw][in_channels / groups][64], filled with zeros.
#pragma once

#include <cstdint>

#include "lissome/kernel/gemm/linear_f32.h"

namespace lissome {

// The window and the sizes, shared by every kernel that slides one over an image.
struct Window {
  int64_t batch = 1, height = 1, width = 1;  // of x
  int64_t out_height = 1, out_width = 1;
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  int64_t pad_height = 0, pad_width = 0;  // at the top and left; below and right follow from the sizes
  int64_t dilation_height = 1, dilation_width = 1;
};

struct ConvF32Call : OutputF32 {
  const float* x = nullptr;  // [batch, height, width, in_channels]; with a band [batch, in_channels, height, width]
  const float* weight = nullptr;  // packed, see above
  const float* zeros = nullptr;   // in_channels zeros
  float* scratch = nullptr;       // conv_f32_scratch() for each part, or null: then tile registers are not used
  float* band = nullptr;          // conv_f32_band() for each part, or null; one group, and no scratch
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  Window window;
};

// As linear_f32_scratch().
int64_t conv_f32_scratch(const ConvF32Call& call);
// Floats in which a part lays lines of planes pixel by pixel.
int64_t conv_f32_band(const ConvF32Call& call);

int64_t packed_conv_f32_size(int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps);  // elements
// `weight` is [out_channels, in_channels / groups, kernel_height, kernel_width], dense in row order.
void pack_conv_f32(const float* weight, int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps,
                   float* packed);

}  // namespace lissome

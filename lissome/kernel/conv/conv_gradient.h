// The gradients of a 2-D convolution of channels-last values (see conv_f32.h; 1-D with height 1), and the packing of
// weights that change from call to call:
//   data:   dx[n, h, v, ic] = bias[ic] + sum over oc, kh, kw with h = oh*stride_h - pad_h + kh*dilation_h, v alike, of
//                             dy[n, oh, ow, oc] * weight[oc][ic][kh][kw]
//   weight: dw[oc][ic][kh][kw] = sum over n, oh, ow of dy[n, oh, ow, oc] * x[n, oh*stride_h - pad_h + kh*dilation_h,
//   ...]
// `window` is always that of the convolution: height and width of x and dx, out_height and out_width of dy. A
// transposed convolution is the data gradient of the plain one, and the other way round.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {

// What a packed weight is for.
enum class ConvPacking : uint8_t {
  forward,  // conv_f32: as pack_conv_f32() does
  data,     // conv_data_f32: see there. With stride 1 conv_f32 takes it too, as the weight of the data gradient
};

struct PackConvF32Call {
  const float* weight = nullptr;  // [out_channels, in_channels / groups, kernel_height, kernel_width], in row order
  float* packed = nullptr;        // packed_conv_f32_size() or packed_conv_data_f32_size()
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  ConvPacking packing = ConvPacking::forward;
  Window window;  // kernel, and for data stride, padding and dilation
};

// The data gradient. The pixels of dx whose h and v leave the same rest modulo the stride are one phase: a convolution
// of dy of stride 1 with those taps that meet them. Packed weight: phases (rests of h, then of v) after each other,
// each as for conv_f32 with in and out channels swapped and its taps backwards. What it gives as a transposed
// convolution may be bent behind the sums.
struct ConvDataF32Call {
  const float* dy = nullptr;      // [batch, out_height, out_width, out_channels]
  const float* weight = nullptr;  // packed
  const float* bias = nullptr;    // [in_channels], or null
  const float* zeros = nullptr;   // out_channels zeros
  float* dx = nullptr;            // [batch, height, width, in_channels]
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  Window window;
  Epilogue epilogue;
};
int64_t packed_conv_data_f32_size(int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps);

// The weight gradient of f32 or bf16 (uint16_t) values, in `splits` pieces that share the pixels and add up to it: few
// outputs and inputs alone would not keep all cores busy. Each sum goes over its pixels in one order, whatever the
// number of parts; with bf16 in pairs of neighbours of a line, where the instruction set has those.
template <typename T>
struct ConvWeightCallOf {
  const T* x = nullptr;      // [batch, height, width, in_channels]
  const T* dy = nullptr;     // [batch, out_height, out_width, out_channels]
  float* dw = nullptr;       // [splits, out_channels, in_channels / groups, kernel_height, kernel_width], in row order
  float* scratch = nullptr;  // conv_weight_scratch() for each part
  int64_t in_channels = 0, out_channels = 0, groups = 1, splits = 1;
  Window window;
};
using ConvWeightF32Call = ConvWeightCallOf<float>;
using ConvWeightBf16Call = ConvWeightCallOf<uint16_t>;
int64_t choose_conv_weight_splits(int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps);
int64_t conv_weight_scratch(const ConvWeightF32Call& call);  // elements, of one part
int64_t conv_weight_scratch(const ConvWeightBf16Call& call);

}  // namespace lissome

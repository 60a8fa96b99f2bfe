// Depthwise 2-D convolution of channels-last values: every channel with a window of its own. In f32, or in bf16 with
// sums and weights in f32.
// Packed weight: [kh * kw][channels].
#pragma once

#include "lissome/kernel/conv/conv_f32.h"
#include "lissome/kernel/gemm/linear_bf16.h"

namespace lissome {

template <typename Output, typename T>
struct DepthwiseCallOf : Output {
  const T* x = nullptr;           // [batch, height, width, channels]
  const float* weight = nullptr;  // packed
  int64_t channels = 0;
  Window window;
};
using DepthwiseF32Call = DepthwiseCallOf<OutputF32, float>;
using DepthwiseBf16Call = DepthwiseCallOf<OutputBf16, uint16_t>;

// `weight` is [channels, 1, kh, kw].
void pack_depthwise(const float* weight, int64_t channels, int64_t taps, float* packed);

}  // namespace lissome

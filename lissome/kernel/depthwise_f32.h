// Depthwise 2-D convolution of channels-last values: every channel with a window of its own.
// Packed weight: [kh * kw][channels].
#pragma once

#include "lissome/kernel/conv_f32.h"

namespace lissome {

struct DepthwiseF32Call : OutputF32 {
  const float* x = nullptr;       // [batch, height, width, channels]
  const float* weight = nullptr;  // packed
  int64_t channels = 0;
  Window window;
};

// `weight` is [channels, 1, kh, kw].
void pack_depthwise_f32(const float* weight, int64_t channels, int64_t taps, float* packed);

}  // namespace lissome

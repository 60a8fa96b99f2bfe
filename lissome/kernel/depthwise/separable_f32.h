// A depthwise convolution and the 1x1 convolution that alone reads it, block by block: what the first gives for some
// neighbouring pixels stays in cache for the product, and the whole of it is never written. Both are done by the
// kernels that do them apart, depthwise_f32 and linear_f32, with their weights and results.
#pragma once

#include "lissome/kernel/depthwise/depthwise.h"

namespace lissome {

// The base tells how the product ends; its rows are the pixels of y.
struct SeparableF32Call : OutputF32 {
  const float* x = nullptr;             // [batch, height, width, channels]
  const float* weight = nullptr;        // of the product, packed as that of a linear
  const float* first_weight = nullptr;  // of the depthwise convolution, packed
  const float* first_bias = nullptr;    // [channels], or null
  float* scratch = nullptr;             // separable_f32_scratch() for each part
  int64_t channels = 0, outputs = 0;
  Window window;  // of the depthwise convolution
  Epilogue first_epilogue;
};

// Floats in which a part keeps a block.
int64_t separable_f32_scratch(const SeparableF32Call& call);

}  // namespace lissome

// An inverted residual (Sandler et al., arXiv:1801.04381) line by line: a 1x1 convolution that widens x, a depthwise
// one, and a 1x1 one that narrows it again. Of what the first gives, only the lines that the second reads for some
// lines of y are there at a time, in cache. All is done by the kernels that do it apart, linear_f32 and separable_f32.
#pragma once

#include "lissome/kernel/depthwise/separable_f32.h"

namespace lissome {

// The base tells of the depthwise convolution and of what follows: its `channels` are those between, its `window`
// slides over them. x is [batch, height, width, inputs].
struct InvertedF32Call : SeparableF32Call {
  const float* widen_weight = nullptr;  // packed as that of a linear
  const float* widen_bias = nullptr;    // [channels], or null
  float* band = nullptr;                // inverted_f32_band() for each part
  int64_t inputs = 0;
  Epilogue widen_epilogue;
};

// Floats in which a part keeps lines.
int64_t inverted_f32_band(const InvertedF32Call& call);

}  // namespace lissome

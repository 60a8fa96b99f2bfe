// Gradients of layer norm and softmax, one row after the other.
#pragma once

#include <cstdint>

namespace lissome {

// Rows are added up in this many shares, whatever the parts: the same sums for any number of threads.
inline constexpr int64_t kGradientShares = 32;

// Of y = h * weight + bias with h = (x - mean) * factor, from dy: dx, and for each share of the rows its part of
// d weight = sum of dy * h and of d bias = sum of dy.
struct LayerNormGradientCall {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* mean = nullptr;    // [rows]
  const float* factor = nullptr;  // [rows]
  const float* weight = nullptr;  // [width], or null for ones
  float* dx = nullptr;            // or null; may be dy itself
  float* weight_sums = nullptr;   // [kGradientShares, width], or null
  float* bias_sums = nullptr;     // [kGradientShares, width], or null
  int64_t rows = 0, width = 0;    // all rows lie `width` apart
};

// Of y = softmax(x): dx = y * (dy - sum of dy * y); of its logarithm: dx = dy - exp(y) * sum of dy.
struct SoftmaxGradientCall {
  const float* dy = nullptr;
  const float* y = nullptr;
  float* dx = nullptr;  // may be dy or y itself
  int64_t rows = 0, width = 0;
  bool logarithm = false;
};

}  // namespace lissome

// Rows of f32: layer norm, RMS norm and softmax, each in one visit to memory.
#pragma once

#include <cstdint>

namespace lissome {

// y = (v - mean(v)) / sqrt(variance(v) + epsilon) * weight + bias with v = x + residual; RMS norm leaves the mean out:
// v / sqrt(mean(v^2) + epsilon) * weight. `sum` receives v where it is wanted too.
struct LayerNormCall {
  const float* x = nullptr;
  const float* residual = nullptr;  // or null
  const float* weight = nullptr;    // [width], or null
  const float* bias = nullptr;      // [width], or null
  float* sum = nullptr;             // or null; may be x or residual itself
  float* mean = nullptr;            // [rows], or null: what the gradient needs
  float* factor = nullptr;          // [rows], or null: 1 / sqrt(variance + epsilon)
  float* y = nullptr;               // may be x or residual itself
  int64_t rows = 0, width = 0;      // all rows lie `width` apart
  float epsilon = 0;
  bool root_mean_square = false;
};

// y = exp(x - max) / sum of exp, or the logarithm of that. A row of only -infinity gives NaN, as everywhere, or zeros.
struct SoftmaxCall {
  const float* x = nullptr;
  float* y = nullptr;  // may be x itself
  int64_t rows = 0, width = 0;
  bool logarithm = false;
  bool zero_unseen = false;  // a row of only -infinity gives zeros
};

}  // namespace lissome

// y[rows, outputs] = act(x[rows, inputs] * weight^T + bias) in bf16, sums and epilogue in f32; a residual is added
// before or after the activation.
//
// Packed weight: panels of 32 outputs, each in steps of 32 inputs; a step is two squares of 16 outputs, as tile
// registers take them: pairs of inputs beside each other, zeros beyond the last output and input.
//   packed[n / 32][k / 32][n / 16 % 2][k / 2 % 16][n % 16][k % 2] = weight[n][k]
#pragma once

#include <cstddef>
#include <cstdint>

#include "lissome/kernel/gemm/linear_f32.h"

namespace lissome {

inline constexpr int64_t kBf16Panel = 32;  // outputs
inline constexpr int64_t kBf16Step = 32;   // inputs

// How sums become results; the same for linear and convolution, whose rows are pixels. Always the first base of a call.
struct OutputBf16 {
  const float* bias = nullptr;         // [outputs], or null
  const uint16_t* residual = nullptr;  // [rows, outputs]; may be y itself
  uint16_t* y = nullptr;
  int64_t residual_stride = 0, y_stride = 0;  // elements from row to row
  Epilogue epilogue;
  ResidualPlace residual_place = ResidualPlace::none;
};

struct LinearBf16Call : OutputBf16 {
  const uint16_t* x = nullptr;
  const uint16_t* weight = nullptr;  // packed, see above
  std::byte* scratch = nullptr;      // parts times linear_bf16_scratch() bytes, aligned to 64
  int64_t rows = 0, inputs = 0, outputs = 0;
  int64_t x_stride = 0;
};

int64_t packed_linear_bf16_size(int64_t outputs, int64_t inputs);  // elements
// `weight` is [outputs, inputs] with any strides, in elements.
void pack_linear_bf16(const uint16_t* weight, int64_t outputs, int64_t inputs, int64_t output_stride,
                      int64_t input_stride, uint16_t* packed);
int64_t linear_bf16_scratch(int64_t rows, int64_t inputs);  // bytes a part

}  // namespace lissome

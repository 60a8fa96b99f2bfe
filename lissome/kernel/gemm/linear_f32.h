// y[rows, outputs] = act(x[rows, inputs] * weight^T + bias), a residual added before or after the activation.
//
// Packed weight: panels of 64 outputs, each [inputs][64], the last panel filled with zeros:
//   packed[(n / 64) * inputs * 64 + k * 64 + n % 64] = weight[n][k]
#pragma once

#include <cstdint>

#include "lissome/kernel/elementwise/activation.h"

namespace lissome {

inline constexpr int64_t kLinearPanel = 64;

enum class ResidualPlace : uint8_t { none, before_activation, after_activation };

// How sums become results; the same for linear and convolution, whose rows are pixels. Always the first base of a call.
struct OutputF32 {
  const float* bias = nullptr;      // [outputs], or null
  const float* residual = nullptr;  // [rows, outputs]; may be y itself
  float* y = nullptr;
  int64_t residual_stride = 0, y_stride = 0;  // elements from row to row
  Epilogue epilogue;
  ResidualPlace residual_place = ResidualPlace::none;
};

struct LinearF32Call : OutputF32 {
  const float* x = nullptr;
  const float* weight = nullptr;  // packed, see above
  float* scratch = nullptr;       // linear_f32_scratch() for each part, or null: then tile registers are not used
  int64_t rows = 0, inputs = 0, outputs = 0;
  int64_t x_stride = 0;
  // The number of this run, or null. A single row reads weights that nearly fit the second-level cache from the last in
  // runs of odd number, else from the first: those that were read last are still there.
  const int64_t* run = nullptr;
  // A single row reads weights that come from memory from several places at once. Intel's cores that read one place
  // each, with the next block fetched, ask the same banks of memory by turns or at once, as their pace and the pages
  // happen to be: 12 to 18 GB/s on an Ice Lake with two cores, against a steady 17 to 19 from several (a decoding step
  // of GPT-2: 1.24 times as fast). AMD's are quicker from one place when others use the memory too: 0.93 on a Zen 4.
  bool streams = false;
};

// Floats of one part; 0 where tile registers would not pay. With scratch, the weight must be finite.
int64_t linear_f32_scratch(const LinearF32Call& call);

int64_t packed_linear_f32_size(int64_t outputs, int64_t inputs);  // elements
// `weight` is [outputs, inputs] with any strides, in elements.
void pack_linear_f32(const float* weight, int64_t outputs, int64_t inputs, int64_t output_stride, int64_t input_stride,
                     float* packed);

}  // namespace lissome

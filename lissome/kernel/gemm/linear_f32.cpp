// Packing, and the portable form: sums in double, so that it can judge the others.
#include "lissome/kernel/gemm/linear_f32.h"

#include <cstring>

#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/bf16x3_amx.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {

int64_t packed_linear_f32_size(int64_t outputs, int64_t inputs) {
  return (outputs + kLinearPanel - 1) / kLinearPanel * kLinearPanel * inputs;
}

void pack_linear_f32(const float* weight, int64_t outputs, int64_t inputs, int64_t output_stride, int64_t input_stride,
                     float* packed) {
  for (int64_t first = 0; first < outputs; first += kLinearPanel) {
    const int64_t count = outputs - first < kLinearPanel ? outputs - first : kLinearPanel;
    float* panel = packed + first * inputs;
    for (int64_t k = 0; k < inputs; ++k) {
      float* row = panel + k * kLinearPanel;
      const float* column = weight + first * output_stride + k * input_stride;
      for (int64_t n = 0; n < count; ++n) row[n] = column[n * output_stride];
      std::memset(row + count, 0, static_cast<size_t>(kLinearPanel - count) * sizeof(float));
    }
  }
}

int64_t linear_f32_scratch(const LinearF32Call& call) {
  return pays_on_tiles(call) ? find_linear_bf16x3(call).floats() : 0;
}

void linear_f32_portable(const LinearF32Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    for (int64_t n = 0; n < call.outputs; ++n) {
      const float* weight = call.weight + n / kLinearPanel * kLinearPanel * call.inputs + n % kLinearPanel;
      double sum = call.bias ? call.bias[n] : 0;
      for (int64_t k = 0; k < call.inputs; ++k) {
        sum += static_cast<double>(call.x[m * call.x_stride + k]) * weight[k * kLinearPanel];
      }
      store_portable(call, m, n, sum);
    }
  }
}

}  // namespace lissome

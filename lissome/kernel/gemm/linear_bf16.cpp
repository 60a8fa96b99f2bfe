// Packing, and the portable form: sums in double, so that it can judge the others.
#include "lissome/kernel/gemm/linear_bf16.h"

#include <algorithm>

#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/linear_bf16_sizes.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {

int64_t packed_linear_bf16_size(int64_t outputs, int64_t inputs) {
  return (outputs + kBf16Panel - 1) / kBf16Panel * kBf16Panel * count_bf16_steps(inputs) * kBf16Step;
}

void pack_linear_bf16(const uint16_t* weight, int64_t outputs, int64_t inputs, int64_t output_stride,
                      int64_t input_stride, uint16_t* packed) {
  std::fill_n(packed, packed_linear_bf16_size(outputs, inputs), uint16_t{0});
  const int64_t steps = count_bf16_steps(inputs);
  for (int64_t n = 0; n < outputs; ++n) {
    for (int64_t k = 0; k < inputs; ++k) {
      packed[find_packed_bf16(n, k, steps)] = weight[n * output_stride + k * input_stride];
    }
  }
}

int64_t linear_bf16_scratch(int64_t rows, int64_t inputs) {
  return std::min(rows, choose_bf16_chunk(inputs)) * count_bf16_steps(inputs) * kBf16Step * 4;
}

void linear_bf16_portable(const LinearBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const int64_t steps = count_bf16_steps(call.inputs);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    for (int64_t n = 0; n < call.outputs; ++n) {
      double sum = call.bias ? call.bias[n] : 0;
      for (int64_t k = 0; k < call.inputs; ++k) {
        sum += static_cast<double>(widen_bf16(call.x[m * call.x_stride + k])) *
               widen_bf16(call.weight[find_packed_bf16(n, k, steps)]);
      }
      store_portable(call, m, n, sum);
    }
  }
}

}  // namespace lissome

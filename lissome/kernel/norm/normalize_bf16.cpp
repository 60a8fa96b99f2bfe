// The portable forms, in double.
#include "lissome/kernel/norm/normalize_bf16.h"

#include <cmath>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"
#include "lissome/kernel/norm/kernel_versions.h"

namespace lissome {

void layer_norm_bf16_portable(const LayerNormBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const auto width = static_cast<double>(call.width);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const uint16_t* x = call.x + m * call.width;
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < call.width && !call.root_mean_square; ++k) mean += widen_bf16(x[k]) / width;
    for (int64_t k = 0; k < call.width; ++k) variance += (widen_bf16(x[k]) - mean) * (widen_bf16(x[k]) - mean) / width;
    const double factor = 1 / std::sqrt(variance + call.epsilon);
    for (int64_t k = 0; k < call.width; ++k) {
      double y = (widen_bf16(x[k]) - mean) * factor;
      if (call.weight) y *= widen_bf16(call.weight[k]);
      if (call.bias) y += widen_bf16(call.bias[k]);
      call.y[m * call.width + k] = narrow_bf16(static_cast<float>(y));
    }
  }
}

void softmax_bf16_portable(const SoftmaxBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const uint16_t* x = call.x + m * call.width;
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < call.width; ++k) largest = widen_bf16(x[k]) > largest ? widen_bf16(x[k]) : largest;
    for (int64_t k = 0; k < call.width; ++k) sum += std::exp(widen_bf16(x[k]) - largest);
    for (int64_t k = 0; k < call.width; ++k) {
      call.y[m * call.width + k] = narrow_bf16(static_cast<float>(std::exp(widen_bf16(x[k]) - largest) / sum));
    }
  }
}

}  // namespace lissome

// The portable forms, in double.
#include "lissome/kernel/norm/normalize.h"

#include <algorithm>
#include <cmath>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/kernel_versions.h"

namespace lissome {

void layer_norm_portable(const LayerNormCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const auto width = static_cast<double>(call.width);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const auto value = [&](int64_t k) {
      const int64_t at = m * call.width + k;
      return call.residual ? call.x[at] + call.residual[at] : call.x[at];
    };
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < call.width; ++k) mean += call.root_mean_square ? 0 : value(k) / width;
    for (int64_t k = 0; k < call.width; ++k) variance += (value(k) - mean) * (value(k) - mean) / width;
    const double factor = 1 / std::sqrt(variance + call.epsilon);
    if (call.mean) call.mean[m] = static_cast<float>(mean);
    if (call.factor) call.factor[m] = static_cast<float>(factor);
    for (int64_t k = 0; k < call.width; ++k) {
      const float v = value(k);
      double y = (v - mean) * factor;
      if (call.weight) y *= call.weight[k];
      if (call.bias) y += call.bias[k];
      if (call.sum) call.sum[m * call.width + k] = v;
      call.y[m * call.width + k] = static_cast<float>(y);
    }
  }
}

void softmax_portable(const SoftmaxCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float* x = call.x + m * call.width;
    float* y = call.y + m * call.width;
    double largest = -INFINITY, sum = 0;
    for (int64_t k = 0; k < call.width; ++k) largest = x[k] > largest ? x[k] : largest;
    if (call.zero_unseen && std::all_of(x, x + call.width, [](float value) { return value == -INFINITY; })) {
      std::fill(y, y + call.width, 0.0f);
      continue;
    }
    for (int64_t k = 0; k < call.width; ++k) sum += std::exp(x[k] - largest);
    for (int64_t k = 0; k < call.width; ++k) {
      const double shifted = x[k] - largest;
      y[k] = static_cast<float>(call.logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  }
}

}  // namespace lissome

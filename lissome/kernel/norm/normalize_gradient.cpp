// The portable forms, in double.
#include "lissome/kernel/norm/normalize_gradient.h"

#include <cmath>
#include <vector>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/kernel_versions.h"

namespace lissome {
namespace {

void store_sums(float* to, int64_t share, const std::vector<double>& sums) {
  if (!to) return;
  const auto width = static_cast<int64_t>(sums.size());
  for (int64_t k = 0; k < width; ++k) to[share * width + k] = static_cast<float>(sums[static_cast<size_t>(k)]);
}

}  // namespace

void layer_norm_gradient_portable(const LayerNormGradientCall& call, int part, int parts) {
  const Range shares = split_evenly(kGradientShares, part, parts);
  const auto count = static_cast<size_t>(call.width);
  for (int64_t share = shares.begin; share < shares.end; ++share) {
    std::vector<double> weight_sums(count), bias_sums(count), weighted(count), h(count);
    const Range rows = split_evenly(call.rows, static_cast<int>(share), kGradientShares);
    for (int64_t m = rows.begin; m < rows.end; ++m) {
      double sum = 0, along = 0;
      for (size_t k = 0; k < count; ++k) {
        const int64_t at = m * call.width + static_cast<int64_t>(k);
        const double d = call.dy[at];
        h[k] = (static_cast<double>(call.x[at]) - call.mean[m]) * call.factor[m];
        weighted[k] = call.weight ? d * call.weight[k] : d;
        sum += weighted[k] / static_cast<double>(count), along += weighted[k] * h[k] / static_cast<double>(count);
        weight_sums[k] += d * h[k], bias_sums[k] += d;
      }
      for (size_t k = 0; k < count && call.dx; ++k) {
        const double dx = (weighted[k] - sum - h[k] * along) * call.factor[m];
        call.dx[m * call.width + static_cast<int64_t>(k)] = static_cast<float>(dx);
      }
    }
    store_sums(call.weight_sums, share, weight_sums);
    store_sums(call.bias_sums, share, bias_sums);
  }
}

void softmax_gradient_portable(const SoftmaxGradientCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float *dy = call.dy + m * call.width, *y = call.y + m * call.width;
    double sum = 0;
    for (int64_t k = 0; k < call.width; ++k) sum += call.logarithm ? dy[k] : static_cast<double>(dy[k]) * y[k];
    for (int64_t k = 0; k < call.width; ++k) {
      const double dx = call.logarithm ? dy[k] - std::exp(static_cast<double>(y[k])) * sum : y[k] * (dy[k] - sum);
      call.dx[m * call.width + k] = static_cast<float>(dx);
    }
  }
}

}  // namespace lissome

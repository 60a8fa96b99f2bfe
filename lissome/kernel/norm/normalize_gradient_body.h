// Gradients of layer norm and softmax over Floats.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/normalize_gradient.h"

namespace lissome {
namespace {

LISSOME_INLINE int64_t lanes_of(int64_t width, int64_t k) {
  return width - k < Floats::kWidth ? width - k : Floats::kWidth;
}

// One row: dx, and what it adds to the sums.
LISSOME_INLINE void differentiate_row(const LayerNormGradientCall& call, int64_t m, float* weight_sums,
                                      float* bias_sums) {
  const float *dy = call.dy + m * call.width, *x = call.x + m * call.width;
  const Floats mean = fill(call.mean[m]), factor = fill(call.factor[m]);
  Floats sum = zeros(), along = zeros();  // of dy * weight, and of that times h
  for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
    const int64_t left = lanes_of(call.width, k);
    const Floats d = load_first(dy + k, left), h = (load_first(x + k, left) - mean) * factor;
    const Floats weighted = call.weight ? d * load_first(call.weight + k, left) : d;
    sum = sum + weighted;
    along = multiply_add(weighted, h, along);
    if (weight_sums) store_first(weight_sums + k, multiply_add(d, h, load_first(weight_sums + k, left)), left);
    if (bias_sums) store_first(bias_sums + k, load_first(bias_sums + k, left) + d, left);
  }
  if (!call.dx) return;
  const float width = static_cast<float>(call.width);
  const Floats shift = fill(sum_lanes(sum) / width), slope = fill(sum_lanes(along) / width);
  for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
    const int64_t left = lanes_of(call.width, k);
    const Floats d = load_first(dy + k, left), h = (load_first(x + k, left) - mean) * factor;
    const Floats weighted = call.weight ? d * load_first(call.weight + k, left) : d;
    store_first(call.dx + m * call.width + k, subtract_product(h, slope, weighted - shift) * factor, left);
  }
}

LISSOME_INLINE void run_layer_norm_gradient(const LayerNormGradientCall& call, int part, int parts) {
  const Range shares = split_evenly(kGradientShares, part, parts);
  for (int64_t share = shares.begin; share < shares.end; ++share) {
    const auto clear = [&](float* sums) {
      if (sums) __builtin_memset(sums, 0, static_cast<size_t>(call.width) * sizeof(float));
      return sums;
    };
    float* weight_sums = clear(call.weight_sums ? call.weight_sums + share * call.width : nullptr);
    float* bias_sums = clear(call.bias_sums ? call.bias_sums + share * call.width : nullptr);
    const Range rows = split_evenly(call.rows, static_cast<int>(share), kGradientShares);
    for (int64_t m = rows.begin; m < rows.end; ++m) differentiate_row(call, m, weight_sums, bias_sums);
  }
}

LISSOME_INLINE void run_softmax_gradient(const SoftmaxGradientCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const float *dy = call.dy + m * call.width, *y = call.y + m * call.width;
    float* dx = call.dx + m * call.width;
    Floats sums = zeros();
    for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
      const int64_t left = lanes_of(call.width, k);
      const Floats d = load_first(dy + k, left);
      sums = call.logarithm ? sums + d : multiply_add(d, load_first(y + k, left), sums);
    }
    const Floats sum = fill(sum_lanes(sums));
    for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
      const int64_t left = lanes_of(call.width, k);
      const Floats d = load_first(dy + k, left), value = load_first(y + k, left);
      store_first(dx + k, call.logarithm ? subtract_product(exponential(value), sum, d) : value * (d - sum), left);
    }
  }
}

}  // namespace
}  // namespace lissome

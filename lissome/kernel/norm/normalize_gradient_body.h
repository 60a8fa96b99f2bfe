// Gradients of layer norm and softmax over Floats.
#pragma once

#include "lissome/kernel/isa/short_row.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/normalize_gradient.h"

namespace lissome {
namespace {

// One row: dx, and what it adds to the sums.
LISSOME_INLINE void differentiate_row(const LayerNormGradientCall& call, int64_t m, float* weight_sums,
                                      float* bias_sums) {
  const float *dy = call.dy + m * call.width, *x = call.x + m * call.width;
  const Floats mean = fill(call.mean[m]), factor = fill(call.factor[m]);
  Floats sums[2] = {zeros(), zeros()}, alongs[2] = {zeros(), zeros()};  // of dy * weight, and of that times h
  const auto add = [&](int64_t k, auto left, int i) {
    const Floats d = load_first(dy + k, left), h = (load_first(x + k, left) - mean) * factor;
    const Floats weighted = call.weight ? d * load_first(call.weight + k, left) : d;
    sums[i] = sums[i] + weighted;
    alongs[i] = multiply_add(weighted, h, alongs[i]);
    if (weight_sums) store_first(weight_sums + k, multiply_add(d, h, load_first(weight_sums + k, left)), left);
    if (bias_sums) store_first(bias_sums + k, load_first(bias_sums + k, left) + d, left);
  };
  int64_t k = 0;
  for (; k + 2 * Floats::kWidth <= call.width; k += 2 * Floats::kWidth) {
    add(k, AllLanes{}, 0);
    add(k + Floats::kWidth, AllLanes{}, 1);
  }
  if (k + Floats::kWidth <= call.width) {
    add(k, AllLanes{}, 0);
    k += Floats::kWidth;
  }
  if (k < call.width) add(k, call.width - k, 0);
  if (!call.dx) return;
  const float width = static_cast<float>(call.width);
  const Floats shift = fill(sum_lanes(sums[0] + sums[1]) / width),
               slope = fill(sum_lanes(alongs[0] + alongs[1]) / width);
  each_vector(call.width, [&](int64_t at, auto left) {
    const Floats d = load_first(dy + at, left), h = (load_first(x + at, left) - mean) * factor;
    const Floats weighted = call.weight ? d * load_first(call.weight + at, left) : d;
    store_first(call.dx + m * call.width + at, subtract_product(h, slope, weighted - shift) * factor, left);
  });
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

LISSOME_INLINE Floats softmax_slope(const SoftmaxGradientCall& call, Floats dy, Floats y, Floats sum) {
  return call.logarithm ? subtract_product(exponential(y), sum, dy) : y * (dy - sum);
}

template <int Vectors>
LISSOME_INLINE void differentiate_softmax_row(const SoftmaxGradientCall& call, ShortRow<Vectors> row, int64_t start) {
  Floats dy[Vectors], y[Vectors], products[Vectors];
  row.load_row(call.dy + start, dy);
  row.load_row(call.y + start, y);
#pragma GCC unroll 8
  for (int i = 0; i < Vectors; ++i) products[i] = call.logarithm ? dy[i] : dy[i] * y[i];
  const Floats sum = fill(row.sum(products));
#pragma GCC unroll 8
  for (int i = 0; i < Vectors; ++i) products[i] = softmax_slope(call, dy[i], y[i], sum);
  row.store_row(call.dx + start, products);
}

LISSOME_INLINE void differentiate_softmax_row(const SoftmaxGradientCall& call, int64_t start) {
  const float *dy = call.dy + start, *y = call.y + start;
  const Floats sum = fill(sum_lanes(sum_vectors(call.width, [&](int64_t k, auto left) {
    const Floats d = load_first(dy + k, left);
    return call.logarithm ? d : d * load_first(y + k, left);
  })));
  each_vector(call.width, [&](int64_t k, auto left) {
    const Floats slope = softmax_slope(call, load_first(dy + k, left), load_first(y + k, left), sum);
    store_first(call.dx + start + k, slope, left);
  });
}

LISSOME_INLINE void run_softmax_gradient(const SoftmaxGradientCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const bool is_short = choose_short_row(call.width, [&](auto row) {
    for (int64_t m = rows.begin; m < rows.end; ++m) differentiate_softmax_row(call, row, m * call.width);
  });
  if (is_short) return;
  for (int64_t m = rows.begin; m < rows.end; ++m) differentiate_softmax_row(call, m * call.width);
}

}  // namespace
}  // namespace lissome

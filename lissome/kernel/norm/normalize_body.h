// Layer norm, RMS norm and softmax over Floats.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/normalize.h"

namespace lissome {
namespace {

LISSOME_INLINE int64_t lanes_left(int64_t width, int64_t k) {
  return width - k < Floats::kWidth ? width - k : Floats::kWidth;
}

LISSOME_INLINE Floats read_row(const LayerNormCall& call, int64_t at, int64_t left) {
  const Floats x = load_first(call.x + at, left);
  return call.residual ? x + load_first(call.residual + at, left) : x;
}

LISSOME_INLINE void normalize_row(const LayerNormCall& call, int64_t m) {
  const int64_t start = m * call.width;
  const float width = static_cast<float>(call.width);
  Floats sums[2] = {zeros(), zeros()};
  // v lies in y from the first visit on: a row stays in the first-level cache.
  for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
    const int64_t left = lanes_left(call.width, k);
    const Floats v = read_row(call, start + k, left);
    if (call.sum) store_first(call.sum + start + k, v, left);
    store_first(call.y + start + k, v, left);
    sums[k / Floats::kWidth % 2] = sums[k / Floats::kWidth % 2] + v;
  }
  const float mean = call.root_mean_square ? 0.0f : sum_lanes(sums[0] + sums[1]) / width;
  Floats squares[2] = {zeros(), zeros()};
  for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
    const int64_t left = lanes_left(call.width, k);
    // The mean is masked too, so that lanes beyond the row add nothing.
    Floats v = load_first(call.y + start + k, left) - fill(mean);
    if (left < Floats::kWidth) v = first_of(v, left);
    squares[k / Floats::kWidth % 2] = multiply_add(v, v, squares[k / Floats::kWidth % 2]);
  }
  const float factor = 1 / __builtin_sqrtf(sum_lanes(squares[0] + squares[1]) / width + call.epsilon);
  if (call.mean) call.mean[m] = mean;
  if (call.factor) call.factor[m] = factor;
  for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
    const int64_t left = lanes_left(call.width, k);
    Floats y = (load_first(call.y + start + k, left) - fill(mean)) * fill(factor);
    if (call.weight) y = y * load_first(call.weight + k, left);
    if (call.bias) y = y + load_first(call.bias + k, left);
    store_first(call.y + start + k, y, left);
  }
}

LISSOME_INLINE void run_layer_norm(const LayerNormCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) normalize_row(call, m);
}

LISSOME_INLINE void softmax_row(const SoftmaxCall& call, const float* x, float* y) {
  const int64_t width = call.width;
  const bool logarithm = call.logarithm;
  const Floats lowest = fill(-__builtin_inff());
  Floats largest = lowest;
  for (int64_t k = 0; k < width; k += Floats::kWidth) {
    const int64_t left = lanes_left(width, k);
    Floats v = load_first(x + k, left);
    if (left < Floats::kWidth) v = first_of_or(v, left, -__builtin_inff());
    largest = max_with(v, largest);
  }
  const float highest = max_lanes(largest);
  // Nothing seen: exponentials of -infinity, which are zeros, and a total that leaves them so.
  const bool unseen = call.zero_unseen && highest == -__builtin_inff();
  const Floats top = fill(unseen ? 0.0f : highest);
  Floats sum = zeros();
  for (int64_t k = 0; k < width; k += Floats::kWidth) {
    const int64_t left = lanes_left(width, k);
    Floats v = exponential(load_first(x + k, left) - top);
    if (!logarithm) store_first(y + k, v, left);
    if (left < Floats::kWidth) v = first_of(v, left);
    sum = sum + v;
  }
  if (logarithm) {
    const Floats logarithm_of_sum = fill(__builtin_logf(sum_lanes(sum)));
    for (int64_t k = 0; k < width; k += Floats::kWidth) {
      const int64_t left = lanes_left(width, k);
      store_first(y + k, load_first(x + k, left) - top - logarithm_of_sum, left);
    }
    return;
  }
  const float total = sum_lanes(sum);
  const Floats factor = fill(unseen && total == total ? 0.0f : 1 / total);
  for (int64_t k = 0; k < width; k += Floats::kWidth) {
    const int64_t left = lanes_left(width, k);
    store_first(y + k, load_first(y + k, left) * factor, left);
  }
}

LISSOME_INLINE void run_softmax(const SoftmaxCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) softmax_row(call, call.x + m * call.width, call.y + m * call.width);
}

}  // namespace
}  // namespace lissome

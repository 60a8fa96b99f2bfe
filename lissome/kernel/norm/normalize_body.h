// Layer norm, RMS norm and softmax over Floats.
#pragma once

#include "lissome/kernel/isa/row_vectors.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/normalize.h"
#include "lissome/kernel/norm/softmax_row_body.h"

namespace lissome {
namespace {

// Adds the residual, and returns where v = x + residual lies.
LISSOME_INLINE const float* add_residual(const LayerNormCall& call, int64_t start) {
  const float* x = call.x + start;
  float* sum = call.sum ? call.sum + start : call.residual ? call.y + start : nullptr;
  if (!sum) return x;
  each_vector(call.width, [&](int64_t k, auto left) {
    const Floats v = load_first(x + k, left);
    store_first(sum + k, call.residual ? v + load_first(call.residual + start + k, left) : v, left);
  });
  return sum;
}

LISSOME_INLINE void normalize_row(const LayerNormCall& call, int64_t m) {
  const int64_t start = m * call.width;
  const float width = static_cast<float>(call.width);
  // A row stays in the first-level cache.
  const float* v = add_residual(call, start);
  float mean = 0;
  if (!call.root_mean_square)
    mean = sum_lanes(sum_vectors(call.width, [&](int64_t k, auto left) { return load_first(v + k, left); })) / width;
  const Floats squares = sum_vectors(call.width, [&](int64_t k, auto left) {
    const Floats distance = first_of(load_first(v + k, left) - fill(mean), left);
    return distance * distance;
  });
  const float factor = 1 / __builtin_sqrtf(sum_lanes(squares) / width + call.epsilon);
  if (call.mean) call.mean[m] = mean;
  if (call.factor) call.factor[m] = factor;
  each_vector(call.width, [&](int64_t k, auto left) {
    Floats y = (load_first(v + k, left) - fill(mean)) * fill(factor);
    if (call.weight) y = y * load_first(call.weight + k, left);
    if (call.bias) y = y + load_first(call.bias + k, left);
    store_first(call.y + start + k, y, left);
  });
}

LISSOME_INLINE void run_layer_norm(const LayerNormCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) normalize_row(call, m);
}

LISSOME_INLINE void softmax_long_row(const float* x, float* y, int64_t width, SoftmaxForm form) {
  const SoftmaxScale scale(form, find_highest_of(x, width));
  const Floats sum = sum_vectors(width, [&](int64_t k, auto left) {
    const Floats power = exponential(load_first(x + k, left) - scale.top);
    if (!form.logarithm) store_first(y + k, power, left);
    return first_of(power, left);
  });
  if (form.logarithm) {
    const Floats logarithm = fill(__builtin_logf(sum_lanes(sum)));
    each_vector(width, [&](int64_t k, auto left) {
      store_first(y + k, load_first(x + k, left) - scale.top - logarithm, left);
    });
    return;
  }
  const Floats factor = scale.factor(sum_lanes(sum));
  each_vector(width, [&](int64_t k, auto left) { store_first(y + k, load_first(y + k, left) * factor, left); });
}

LISSOME_INLINE void run_softmax(const SoftmaxCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const SoftmaxForm form = {call.logarithm, call.zero_unseen};
  const int64_t width = call.width, start = rows.begin * width, count = rows.end - rows.begin;
  if (softmax_short_rows(call.x + start, call.y + start, count, width, form)) return;
  for (int64_t m = rows.begin; m < rows.end; ++m) softmax_long_row(call.x + m * width, call.y + m * width, width, form);
}

}  // namespace
}  // namespace lissome

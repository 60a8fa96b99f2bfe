// Layer norm and softmax of bf16 rows over Floats. A row is read anew in every visit: it stays in the first-level
// cache, and widening costs less than a copy in f32.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/normalize_bf16.h"
#include "lissome/kernel/norm/softmax_row_body.h"

namespace lissome {
namespace {

LISSOME_INLINE void normalize_row(const LayerNormBf16Call& call, int64_t m) {
  const uint16_t* x = call.x + m * call.width;
  uint16_t* y = call.y + m * call.width;
  const float width = static_cast<float>(call.width);
  Floats mean = zeros();
  if (!call.root_mean_square)
    mean =
        fill(sum_lanes(sum_vectors(call.width, [&](int64_t k, auto left) { return load_first(x + k, left); })) / width);
  const Floats squares = sum_vectors(call.width, [&](int64_t k, auto left) {
    const Floats distance = first_of(load_first(x + k, left) - mean, left);
    return distance * distance;
  });
  const Floats factor = fill(1 / __builtin_sqrtf(sum_lanes(squares) / width + call.epsilon));
  each_vector(call.width, [&](int64_t k, auto left) {
    Floats value = (load_first(x + k, left) - mean) * factor;
    if (call.weight) value = value * load_first(call.weight + k, left);
    if (call.bias) value = value + load_first(call.bias + k, left);
    store_first(y + k, value, left);
  });
}

LISSOME_INLINE void run_layer_norm_bf16(const LayerNormBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) normalize_row(call, m);
}

LISSOME_INLINE void softmax_long_row(const uint16_t* x, uint16_t* y, int64_t width) {
  const Floats top = fill(find_highest_of(x, width));
  const Floats sum = sum_vectors(
      width, [&](int64_t k, auto left) { return first_of(exponential(load_first(x + k, left) - top), left); });
  const Floats factor = fill(1 / sum_lanes(sum));
  each_vector(width, [&](int64_t k, auto left) {
    store_first(y + k, exponential(load_first(x + k, left) - top) * factor, left);
  });
}

LISSOME_INLINE void run_softmax_bf16(const SoftmaxBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const int64_t width = call.width, start = rows.begin * width, count = rows.end - rows.begin;
  if (softmax_short_rows(call.x + start, call.y + start, count, width, SoftmaxForm{})) return;
  for (int64_t m = rows.begin; m < rows.end; ++m) softmax_long_row(call.x + m * width, call.y + m * width, width);
}

}  // namespace
}  // namespace lissome

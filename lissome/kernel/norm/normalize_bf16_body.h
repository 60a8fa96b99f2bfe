// Layer norm and softmax of bf16 rows over Floats. A row is read anew in every visit: it stays in the first-level
// cache, and widening costs less than a copy in f32.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/normalize_bf16.h"

namespace lissome {
namespace {

LISSOME_INLINE int64_t lanes_left(int64_t width, int64_t k) {
  return width - k < Floats::kWidth ? width - k : Floats::kWidth;
}

// The sum of function(v) over a row; lanes beyond it add nothing. Two sums, so that additions do not wait.
template <typename Function>
LISSOME_INLINE float sum_row(const uint16_t* x, int64_t width, const Function& function) {
  Floats sums[2] = {zeros(), zeros()};
  int64_t k = 0;
  for (; k + 2 * Floats::kWidth <= width; k += 2 * Floats::kWidth) {
    sums[0] = sums[0] + function(load(x + k));
    sums[1] = sums[1] + function(load(x + k + Floats::kWidth));
  }
  for (; k < width; k += Floats::kWidth) {
    const int64_t left = lanes_left(width, k);
    sums[0] = sums[0] + first_of(function(load_first(x + k, left)), left);
  }
  return sum_lanes(sums[0] + sums[1]);
}

LISSOME_INLINE Floats load_lanes(const uint16_t* p, int64_t left) {
  return left == Floats::kWidth ? load(p) : load_first(p, left);
}

LISSOME_INLINE void store_lanes(uint16_t* p, Floats a, int64_t left) {
  left == Floats::kWidth ? store(p, a) : store_first(p, a, left);
}

LISSOME_INLINE void run_layer_norm_bf16(const LayerNormBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const float width = static_cast<float>(call.width);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const uint16_t* x = call.x + m * call.width;
    uint16_t* y = call.y + m * call.width;
    const bool centred = !call.root_mean_square;
    const Floats mean = centred ? fill(sum_row(x, call.width, [](Floats v) { return v; }) / width) : zeros();
    const float square = sum_row(x, call.width, [mean](Floats v) { return (v - mean) * (v - mean); });
    const Floats factor = fill(1 / __builtin_sqrtf(square / width + call.epsilon));
    for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
      const int64_t left = lanes_left(call.width, k);
      Floats value = (load_lanes(x + k, left) - mean) * factor;
      if (call.weight) value = value * load_lanes(call.weight + k, left);
      if (call.bias) value = value + load_lanes(call.bias + k, left);
      store_lanes(y + k, value, left);
    }
  }
}

LISSOME_INLINE void run_softmax_bf16(const SoftmaxBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const uint16_t* x = call.x + m * call.width;
    uint16_t* y = call.y + m * call.width;
    Floats largest = fill(-__builtin_inff());
    for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
      const int64_t left = lanes_left(call.width, k);
      largest = max_with(first_of_or(load_lanes(x + k, left), left, -__builtin_inff()), largest);
    }
    const Floats top = fill(max_lanes(largest));
    const Floats factor = fill(1 / sum_row(x, call.width, [top](Floats v) { return exponential(v - top); }));
    for (int64_t k = 0; k < call.width; k += Floats::kWidth) {
      const int64_t left = lanes_left(call.width, k);
      store_lanes(y + k, exponential(load_lanes(x + k, left) - top) * factor, left);
    }
  }
}

}  // namespace
}  // namespace lissome

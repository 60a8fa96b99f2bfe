// Reductions of one axis over Floats: along rows, or across them with the inner axis in registers.
#pragma once

#include "lissome/kernel/vector_bf16.h"

#include "lissome/kernel/move.h"
#include "lissome/kernel/split.h"

namespace lissome {
namespace {

LISSOME_INLINE Floats start_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::maximum: return fill(-__builtin_inff());
    case Reduction::minimum: return fill(__builtin_inff());
    default: return zeros();
  }
}

LISSOME_INLINE Floats combine(Reduction reduction, Floats so_far, Floats x) {
  switch (reduction) {
    case Reduction::maximum: return keep_nan(so_far, max_with(so_far, x));
    case Reduction::minimum: return keep_nan(so_far, min_with(so_far, x));
    case Reduction::norm: return multiply_add(x, x, so_far);
    default: return so_far + x;
  }
}

LISSOME_INLINE float reduce_lanes(Reduction reduction, Floats x) {
  alignas(64) float lanes[Floats::kWidth];
  store(lanes, x);
  float result = lanes[0];
  for (int i = 1; i < Floats::kWidth; ++i) {
    const float lane = lanes[i];
    switch (reduction) {
      case Reduction::maximum:
        result = lane > result || lane != lane ? (result != result ? result : lane) : result;
        break;
      case Reduction::minimum:
        result = lane < result || lane != lane ? (result != result ? result : lane) : result;
        break;
      default: result += lane; break;
    }
  }
  return result;
}

template <typename T>
LISSOME_INLINE float reduce_row(const ReduceCallOf<T>& call, const T* x) {
  Floats sums[2] = {start_of(call.reduction), start_of(call.reduction)};
  int64_t k = 0;
  for (; k + 2 * Floats::kWidth <= call.count; k += 2 * Floats::kWidth) {
    sums[0] = combine(call.reduction, sums[0], load(x + k));
    sums[1] = combine(call.reduction, sums[1], load(x + k + Floats::kWidth));
  }
  for (; k < call.count; k += Floats::kWidth) {
    const int64_t left = call.count - k;
    Floats value = load_first(x + k, left < Floats::kWidth ? left : Floats::kWidth);
    if (left < Floats::kWidth && call.reduction >= Reduction::maximum) {
      value = first_of_or(value, left, call.reduction == Reduction::maximum ? -__builtin_inff() : __builtin_inff());
    }
    sums[0] = combine(call.reduction, sums[0], value);
  }
  const Floats both = call.reduction == Reduction::norm ? sums[0] + sums[1] : combine(call.reduction, sums[0], sums[1]);
  const float result = reduce_lanes(call.reduction, both);
  if (call.reduction == Reduction::norm) return __builtin_sqrtf(result);
  return call.reduction == Reduction::mean ? result / static_cast<float>(call.count) : result;
}

template <typename T>
LISSOME_INLINE void reduce_columns(const ReduceCallOf<T>& call, int64_t outer, int64_t first, int64_t lanes) {
  const T* x = call.x + outer * call.count * call.inner + first;
  Floats so_far = start_of(call.reduction);
  for (int64_t k = 0; k < call.count; ++k)
    so_far = combine(call.reduction, so_far, load_first(x + k * call.inner, lanes));
  if (call.reduction == Reduction::mean) so_far = so_far / fill(static_cast<float>(call.count));
  if (call.reduction == Reduction::norm) so_far = square_root(so_far);
  store_first(call.y + outer * call.inner + first, so_far, lanes);
}

LISSOME_INLINE void store_one(float* to, float value) { *to = value; }
LISSOME_INLINE void store_one(uint16_t* to, float value) { store_first(to, fill(value), 1); }

template <typename T>
LISSOME_INLINE void reduce_share(const ReduceCallOf<T>& call, int part, int parts) {
  if (call.inner == 1) {
    const Range range = split_evenly(call.outer, part, parts);
    for (int64_t i = range.begin; i < range.end; ++i) store_one(call.y + i, reduce_row(call, call.x + i * call.count));
    return;
  }
  const int64_t blocks = (call.inner + Floats::kWidth - 1) / Floats::kWidth;
  const Range range = split_evenly(call.outer * blocks, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t first = i % blocks * Floats::kWidth;
    reduce_columns(call, i / blocks, first, call.inner - first < Floats::kWidth ? call.inner - first : Floats::kWidth);
  }
}

LISSOME_INLINE void run_reduce(const ReduceCall& call, int part, int parts) { reduce_share(call, part, parts); }
LISSOME_INLINE void run_reduce_bf16(const ReduceBf16Call& call, int part, int parts) {
  reduce_share(call, part, parts);
}

}  // namespace
}  // namespace lissome

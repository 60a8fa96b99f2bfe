// Reductions of one axis over Floats: along rows, or across them with the inner axis in registers.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/elementwise/reduce.h"
#include "lissome/kernel/gemm/split.h"

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

// Columns of whole registers side by side, so that each visit to a row reads several lines of cache.
constexpr int kColumnVectors = 4;

template <int Vectors, typename T>
LISSOME_INLINE void reduce_columns(const ReduceCallOf<T>& call, int64_t outer, int64_t first, int64_t lanes) {
  const T* x = call.x + outer * call.count * call.inner + first;
  Floats so_far[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) so_far[v] = start_of(call.reduction);
  const auto read = [&](int64_t k, int v) {
    const T* at = x + k * call.inner + v * Floats::kWidth;
    return Vectors > 1 ? load(at) : load_first(at, lanes);
  };
  for (int64_t k = 0; k < call.count; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) so_far[v] = combine(call.reduction, so_far[v], read(k, v));
  }
  for (int v = 0; v < Vectors; ++v) {
    Floats result = so_far[v];
    if (call.reduction == Reduction::mean) result = result / fill(static_cast<float>(call.count));
    if (call.reduction == Reduction::norm) result = square_root(result);
    store_first(call.y + outer * call.inner + first + v * Floats::kWidth, result, Vectors > 1 ? Floats::kWidth : lanes);
  }
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
  constexpr int64_t kColumn = kColumnVectors * Floats::kWidth;
  const int64_t blocks = (call.inner + kColumn - 1) / kColumn;
  const Range range = split_evenly(call.outer * blocks, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t first = i % blocks * kColumn, end = first + kColumn;
    if (end <= call.inner) {
      reduce_columns<kColumnVectors>(call, i / blocks, first, Floats::kWidth);
      continue;
    }
    for (int64_t at = first; at < call.inner; at += Floats::kWidth) {
      const int64_t left = call.inner - at;
      reduce_columns<1>(call, i / blocks, at, left < Floats::kWidth ? left : Floats::kWidth);
    }
  }
}

LISSOME_INLINE void run_reduce(const ReduceCall& call, int part, int parts) { reduce_share(call, part, parts); }
LISSOME_INLINE void run_reduce_bf16(const ReduceBf16Call& call, int part, int parts) {
  reduce_share(call, part, parts);
}

}  // namespace
}  // namespace lissome

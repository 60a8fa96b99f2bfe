// Rows of numbers become columns of panels, as linear_f32 reads them.
#pragma once

#include "lissome/kernel/gemm/linear_f32.h"
#include "lissome/kernel/move/transpose_body.h"

namespace lissome {
namespace {

// panel[k][n] = rows[n * stride + k] for k < inner, zero for n >= count; [inner][64].
LISSOME_INLINE void pack_columns(const float* rows, int64_t stride, int64_t count, int64_t inner, float* panel) {
  constexpr int64_t kWidth = Floats::kWidth;
  for (int64_t n = 0; n < kLinearPanel; n += kWidth) {
    const int64_t left = count - n, columns = left < 0 ? 0 : left < kWidth ? left : kWidth;
    const float* from = rows + n * stride;
    int64_t k = 0;
    for (; k + kWidth <= inner; k += kWidth) {
      Floats lines[kWidth];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kWidth; ++i) lines[i] = i < columns ? load(from + i * stride + k) : zeros();
      transpose(lines);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kWidth; ++i) store(panel + (k + i) * kLinearPanel + n, lines[i]);
    }
    for (; k < inner; ++k) {
      for (int64_t i = 0; i < kWidth; ++i) panel[k * kLinearPanel + n + i] = i < columns ? from[i * stride + k] : 0;
    }
  }
}

}  // namespace
}  // namespace lissome

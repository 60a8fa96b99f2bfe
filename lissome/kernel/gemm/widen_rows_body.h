// Rows of bf16 as rows of f32, which is exact, and back, over Floats.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

namespace lissome {
namespace {

// `from`: rows `stride` elements apart; `to`: dense.
inline void widen_rows(const uint16_t* from, int64_t stride, int64_t rows, int64_t width, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < width; k += Floats::kWidth) {
      const int64_t left = width - k < Floats::kWidth ? width - k : Floats::kWidth;
      store_first(to + r * width + k, load_first(from + r * stride + k, left), left);
    }
  }
}

// `from`: dense; `to`: rows `stride` elements apart.
inline void narrow_rows(const float* from, int64_t rows, int64_t width, uint16_t* to, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < width; k += Floats::kWidth) {
      const int64_t left = width - k < Floats::kWidth ? width - k : Floats::kWidth;
      store_first(to + r * stride + k, load_first(from + r * width + k, left), left);
    }
  }
}

}  // namespace
}  // namespace lissome

// Softmax of one row of f32 or bf16, whose exponentials stay in registers where it is short.
#pragma once

#include "lissome/kernel/isa/short_row.h"

#include "lissome/kernel/elementwise/activation_body.h"

namespace lissome {
namespace {

struct SoftmaxForm {
  bool logarithm = false;
  bool zero_unseen = false;  // see SoftmaxCall
};

// What is subtracted from a row, and what its exponentials are multiplied by.
struct SoftmaxScale {
  bool unseen = false;  // only -infinity, which is to give zeros
  Floats top;

  LISSOME_INLINE SoftmaxScale(SoftmaxForm form, float highest)
      : unseen(form.zero_unseen && highest == -__builtin_inff()), top(fill(unseen ? 0.0f : highest)) {}
  LISSOME_INLINE Floats factor(float total) const { return fill(unseen && total == total ? 0.0f : 1 / total); }
};

template <int Vectors, typename T>
LISSOME_INLINE void softmax_short_row(ShortRow<Vectors> row, const T* x, T* y, SoftmaxForm form) {
  Floats values[Vectors], powers[Vectors];
  row.load_row(x, values);
  const SoftmaxScale scale(form, row.find_highest(values));
#pragma GCC unroll 8
  for (int i = 0; i < Vectors; ++i) powers[i] = exponential(values[i] - scale.top);
  const float total = row.sum(powers);
  if (form.logarithm) {
    const Floats logarithm = fill(__builtin_logf(total));
#pragma GCC unroll 8
    for (int i = 0; i < Vectors; ++i) powers[i] = values[i] - scale.top - logarithm;
  } else {
    const Floats factor = scale.factor(total);
#pragma GCC unroll 8
    for (int i = 0; i < Vectors; ++i) powers[i] = powers[i] * factor;
  }
  row.store_row(y, powers);
}

template <typename T>
LISSOME_INLINE float find_highest_of(const T* x, int64_t width) {
  Floats largest = fill(-__builtin_inff());
  each_vector(width, [&](int64_t k, auto left) {
    largest = max_with(first_of_or(load_first(x + k, left), left, -__builtin_inff()), largest);
  });
  return max_lanes(largest);
}

// False where rows are too long for registers.
template <typename T>
LISSOME_INLINE bool softmax_short_rows(const T* x, T* y, int64_t rows, int64_t width, SoftmaxForm form) {
  return choose_short_row(width, [&](auto row) {
    for (int64_t m = 0; m < rows; ++m) softmax_short_row(row, x + m * width, y + m * width, form);
  });
}

}  // namespace
}  // namespace lissome

// A row that fits in a few registers. Its last register ends where the row ends and shares lanes with the one before:
// a store with a mask counts as one of all lanes where processors look for loads that must wait for it, so that each
// row of a result in the place of x waited for the one before.
#pragma once

#include "lissome/kernel/isa/row_vectors.h"

namespace lissome {
namespace {

constexpr int kRowRegisters = Floats::kWidth == 16 ? 8 : 4;

// Of Vectors * Floats::kWidth elements at most, and more than one register less.
template <int Vectors>
struct ShortRow {
  static constexpr int kVectors = Vectors;
  int64_t width;

  template <typename T>
  LISSOME_INLINE void load_row(const T* x, Floats (&row)[Vectors]) const {
    if constexpr (Vectors == 1) {
      row[0] = load_first(x, width);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < Vectors - 1; ++i) row[i] = load(x + i * Floats::kWidth);
      row[Vectors - 1] = load(x + width - Floats::kWidth);
    }
  }

  template <typename T>
  LISSOME_INLINE void store_row(T* y, const Floats (&row)[Vectors]) const {
    if constexpr (Vectors == 1) {
      store_exactly(y, row[0], width);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < Vectors - 1; ++i) store(y + i * Floats::kWidth, row[i]);
      store(y + width - Floats::kWidth, row[Vectors - 1]);
    }
  }

  LISSOME_INLINE float find_highest(const Floats (&row)[Vectors]) const {
    if constexpr (Vectors == 1) return max_lanes(first_of_or(row[0], width, -__builtin_inff()));
    Floats highest = row[0];
#pragma GCC unroll 8
    for (int i = 1; i < Vectors; ++i) highest = max_with(row[i], highest);
    return max_lanes(highest);
  }

  LISSOME_INLINE float sum(const Floats (&row)[Vectors]) const {
    if constexpr (Vectors == 1) return sum_lanes(first_of(row[0], width));
    // Lanes that the register before has too are taken away from themselves.
    const Floats last = row[Vectors - 1];
    Floats sum = last - first_of(last, Vectors * Floats::kWidth - width);
#pragma GCC unroll 8
    for (int i = 0; i < Vectors - 1; ++i) sum = sum + row[i];
    return sum_lanes(sum);
  }
};

// run(ShortRow<as many as `width` needs>); false where rows are too long.
template <int Vectors = 1, typename Run>
LISSOME_INLINE bool choose_short_row(int64_t width, const Run& run) {
  if (width <= Vectors * Floats::kWidth) {
    run(ShortRow<Vectors>{width});
    return true;
  }
  if constexpr (Vectors < kRowRegisters) return choose_short_row<Vectors + 1>(width, run);
  return false;
}

}  // namespace
}  // namespace lissome

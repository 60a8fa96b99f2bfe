// A row as registers: whole ones, and a last one of fewer lanes. Include after vector.h or vector_bf16.h.
#pragma once

#include "lissome/kernel/isa/vector.h"

namespace lissome {
namespace {

// Stands where a count of lanes does: all of them, without a mask.
struct AllLanes {};
template <typename T>
LISSOME_INLINE Floats load_first(const T* p, AllLanes) {
  return load(p);
}
template <typename T>
LISSOME_INLINE void store_first(T* p, Floats a, AllLanes) {
  store(p, a);
}
LISSOME_INLINE Floats first_of(Floats a, AllLanes) { return a; }
LISSOME_INLINE Floats first_of_or(Floats a, AllLanes, float) { return a; }

// f(first column, lanes) for each register of a row.
template <typename Function>
LISSOME_INLINE void each_vector(int64_t width, const Function& f) {
  int64_t k = 0;
  for (; k + Floats::kWidth <= width; k += Floats::kWidth) f(k, AllLanes{});
  if (k < width) f(k, width - k);
}

// The sum of f(first column, lanes) over the registers of a row, lane by lane, in four sums, so that additions do not
// wait. Lanes beyond the row must be zero.
template <typename Function>
LISSOME_INLINE Floats sum_vectors(int64_t width, const Function& f) {
  constexpr int kTogether = 4;
  Floats sums[kTogether] = {zeros(), zeros(), zeros(), zeros()};
  int64_t k = 0;
  for (; k + kTogether * Floats::kWidth <= width; k += kTogether * Floats::kWidth) {
#pragma GCC unroll 4
    for (int i = 0; i < kTogether; ++i) sums[i] = sums[i] + f(k + i * Floats::kWidth, AllLanes{});
  }
  for (; k + Floats::kWidth <= width; k += Floats::kWidth) sums[0] = sums[0] + f(k, AllLanes{});
  if (k < width) sums[1] = sums[1] + f(k, width - k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace
}  // namespace lissome

// Reductions of one axis, and running sums along it.
#pragma once

#include <cstdint>

namespace lissome {

// y[o, k, i] = the sum of x[o, 0..k, i], in f32 (added up in double) or i64.
struct CumulateCall {
  const void* x = nullptr;
  void* y = nullptr;
  int64_t outer = 1, count = 1, inner = 1;
  bool integers = false;
};

enum class Reduction : uint8_t {
  sum,
  mean,
  norm,  // the root of the sum of squares
  maximum,
  minimum,
};

// y[outer, inner] = reduction over the middle axis of x[outer, count, inner].
// find_largest writes where the largest of them stands (the first of several, or the first NaN), as i64, instead.
template <typename T>
struct ReduceCallOf {
  const T* x = nullptr;
  T* y = nullptr;
  int64_t* positions = nullptr;
  int64_t outer = 1, count = 1, inner = 1;
  Reduction reduction = Reduction::sum;
};
using ReduceCall = ReduceCallOf<float>;
using ReduceBf16Call = ReduceCallOf<uint16_t>;  // sums in f32

}  // namespace lissome

// The portable reductions, which the vector ones are held against.
#include "lissome/kernel/elementwise/reduce.h"

#include <cmath>

#include "lissome/kernel/elementwise/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {
namespace {

template <typename T, typename Sum>
void cumulate_all(const CumulateCall& call, int part, int parts) {
  const Range mine = split_evenly(call.outer * call.inner, part, parts);
  for (int64_t at = mine.begin; at < mine.end; ++at) {
    const int64_t start = at / call.inner * call.count * call.inner + at % call.inner;
    Sum sum = 0;
    for (int64_t k = 0; k < call.count; ++k) {
      sum += static_cast<Sum>(static_cast<const T*>(call.x)[start + k * call.inner]);
      static_cast<T*>(call.y)[start + k * call.inner] = static_cast<T>(sum);
    }
  }
}

template <typename T>
void reduce_all(const ReduceCallOf<T>& call, int part, int parts) {
  const Range range = split_evenly(call.outer * call.inner, part, parts);
  for (int64_t at = range.begin; at < range.end; ++at) {
    const T* x = call.x + at / call.inner * call.count * call.inner + at % call.inner;
    double sum = 0, squares = 0, largest = -INFINITY, smallest = INFINITY;
    for (int64_t k = 0; k < call.count; ++k) {
      const double value = widen_portable(x[k * call.inner]);
      sum += value;
      squares += value * value;
      largest = std::isnan(value) || value > largest ? (std::isnan(largest) ? largest : value) : largest;
      smallest = std::isnan(value) || value < smallest ? (std::isnan(smallest) ? smallest : value) : smallest;
    }
    switch (call.reduction) {
      case Reduction::sum: narrow_portable(sum, call.y[at]); break;
      case Reduction::mean: narrow_portable(sum / static_cast<double>(call.count), call.y[at]); break;
      case Reduction::norm: narrow_portable(std::sqrt(squares), call.y[at]); break;
      case Reduction::maximum: narrow_portable(largest, call.y[at]); break;
      case Reduction::minimum: narrow_portable(smallest, call.y[at]); break;
    }
  }
}

}  // namespace

void cumulate_portable(const CumulateCall& call, int part, int parts) {
  if (call.integers) {
    cumulate_all<int64_t, uint64_t>(call, part, parts);  // wraps around
  } else {
    cumulate_all<float, double>(call, part, parts);
  }
}

void reduce_portable(const ReduceCall& call, int part, int parts) { reduce_all(call, part, parts); }
void reduce_bf16_portable(const ReduceBf16Call& call, int part, int parts) { reduce_all(call, part, parts); }

void find_largest_portable(const ReduceCall& call, int part, int parts) {
  const Range range = split_evenly(call.outer * call.inner, part, parts);
  for (int64_t at = range.begin; at < range.end; ++at) {
    const float* x = call.x + at / call.inner * call.count * call.inner + at % call.inner;
    int64_t best = 0;
    for (int64_t k = 1; k < call.count; ++k) {
      const float value = x[k * call.inner], largest = x[best * call.inner];
      if (value > largest || (value != value && largest == largest)) best = k;
    }
    call.positions[at] = best;
  }
}

}  // namespace lissome

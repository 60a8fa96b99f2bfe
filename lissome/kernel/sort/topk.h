// The largest or smallest elements of each row, in order, with where they stand. NaN is larger than any number, as in
// PyTorch; of equal elements the one further left comes first.
#pragma once

#include <cstdint>

namespace lissome {

struct TopkCall {
  const float* x = nullptr;      // [rows, columns]; columns at most INT32_MAX
  float* values = nullptr;       // [rows, count]
  int64_t* positions = nullptr;  // [rows, count]
  int64_t* scratch = nullptr;    // [parts, 2, count]
  int64_t rows = 0, columns = 0, count = 0;
  bool largest = true;
};

}  // namespace lissome

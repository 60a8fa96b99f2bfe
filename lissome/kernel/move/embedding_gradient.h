// The gradient of a table of embeddings: rows of dy added up where they were taken from.
#pragma once

#include <cstdint>

namespace lissome {

// y[r] = the sum of dy[i] over all i with indices[i] == r, in the order of i; zeros where there are none, and for
// `padding`. An index outside of [0, rows) sets *fault. Each part owns some rows of y.
struct EmbeddingGradientCall {
  const float* dy = nullptr;         // [count, width]
  const int64_t* indices = nullptr;  // [count]
  float* y = nullptr;                // [rows, width]
  int64_t* fault = nullptr;
  int64_t fault_code = 0;
  int64_t rows = 0, width = 0, count = 0, padding = -1;
};

}  // namespace lissome

// Layer norm and softmax of bf16 rows: as normalize.h, everything between load and store in f32.
#pragma once

#include <cstdint>

namespace lissome {

struct LayerNormBf16Call {
  const uint16_t* x = nullptr;
  const uint16_t* weight = nullptr;  // [width], or null
  const uint16_t* bias = nullptr;    // [width], or null
  uint16_t* y = nullptr;             // may be x itself
  int64_t rows = 0, width = 0;       // all rows lie `width` apart
  float epsilon = 0;
  bool root_mean_square = false;
};

struct SoftmaxBf16Call {
  const uint16_t* x = nullptr;
  uint16_t* y = nullptr;  // may be x itself
  int64_t rows = 0, width = 0;
};

}  // namespace lissome

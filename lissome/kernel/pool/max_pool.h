// Max pooling that remembers where its results come from, and its gradient. Channels-last, f32 or bf16 (uint16_t);
// windows as in pool.h.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {

template <typename T>
struct MaxPoolCallOf {
  const T* x = nullptr;        // [batch, height, width, channels]
  T* y = nullptr;              // [batch, out_height, out_width, channels]
  uint8_t* indices = nullptr;  // as y: the tap of the window, row by row, that holds the first largest, or the last NaN
  int64_t channels = 0;
  Window window;  // at most 255 taps
};
using MaxPoolCall = MaxPoolCallOf<float>;
using MaxPoolBf16Call = MaxPoolCallOf<uint16_t>;

// dx: each number is the sum of dy of those windows whose largest it was, in the order of the windows; in
// f32, rounded once.
template <typename T>
struct MaxPoolGradientCallOf {
  const T* dy = nullptr;
  const uint8_t* indices = nullptr;
  T* dx = nullptr;
  int64_t channels = 0;
  Window window;
};
using MaxPoolGradientCall = MaxPoolGradientCallOf<float>;
using MaxPoolGradientBf16Call = MaxPoolGradientCallOf<uint16_t>;

}  // namespace lissome

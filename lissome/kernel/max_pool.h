// Max pooling that remembers where its results come from, and its gradient. Channels-last; windows as in pool.h.
#pragma once

#include "lissome/kernel/conv_f32.h"

namespace lissome {

struct MaxPoolCall {
  const float* x = nullptr;   // [batch, height, width, channels]
  float* y = nullptr;         // [batch, out_height, out_width, channels]
  uint8_t* places = nullptr;  // as y: the tap of the window, row by row, that holds the first largest, or the last NaN
  int64_t channels = 0;
  Window window;  // at most 255 taps
};

// dx: each number is the sum of dy of those windows whose largest it was, in the order of the windows.
struct MaxPoolGradientCall {
  const float* dy = nullptr;
  const uint8_t* places = nullptr;
  float* dx = nullptr;
  int64_t channels = 0;
  Window window;
};

}  // namespace lissome

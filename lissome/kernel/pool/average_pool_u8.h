// Average pooling of channels-last bytes, see program/op/bytes.cpp:
//   acc = sum over the window of (x - x_zero), exact; outside of x lies the number 0
//   y = quantize(f32(acc) * (x_scale / divisor)): u8 as in linear_u8s8.h
#pragma once

#include "lissome/kernel/pool/pool.h"

namespace lissome {

// x and y are u8; `average` is taken for granted. A window has at most kAveragedBytes elements.
struct AveragePoolU8Call : PoolCall {
  float x_scale = 1;
  int32_t x_zero = 0;
  float out_inverse = 1;  // 1 / scale of y
  int32_t out_zero = 0;
};

inline constexpr int64_t kAveragedBytes = 65'793;  // whose sums are exact in f32

}  // namespace lissome

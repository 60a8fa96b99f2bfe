// Attention whose two products are of bytes, with its softmax in f32:
//   q: u8 with a scale and a zero point a row, as quantize_rows (linear_u8s8.h)
//   k: s8 with a scale a row, v: s8 with a scale a column: scale = largest / 127, 1 where that is below 1e-30;
//      round half to even(x * (1 / scale)). NaN or infinity makes the scale NaN
//   scores = (q - zero) * k * (scale of k * scale of q); s = scores * scale + mask, in f32
//   weights: u8, round half to even(255 * exp(s - largest)); y = weights * v * (scale of v * (1 / sum of weights))
// A weight is off by half a 255th of the largest of its query at most, and so is what it gives to y.
#pragma once

#include <cstddef>

#include "lissome/kernel/attention/attention.h"

namespace lissome {

struct AttentionU8S8Call : AttentionShape {
  const float* q = nullptr;  // as in attention.h
  const float* k = nullptr;
  const float* v = nullptr;
  const void* mask = nullptr;
  float* y = nullptr;
  std::byte* scratch = nullptr;  // parts times attention_u8s8_scratch() bytes, aligned to 64
};

int64_t attention_u8s8_scratch(int64_t keys, int64_t size, int64_t value_size);  // bytes a part, a multiple of 64

}  // namespace lissome

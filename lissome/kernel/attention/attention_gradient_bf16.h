// The gradient of attention in bf16: as attention_gradient.h, sums in f32. Where the processor multiplies bf16, weights
// and the gradients of scores are rounded to it before they are multiplied again.
#pragma once

#include "lissome/kernel/attention/attention_bf16.h"

namespace lissome {

// As the forward call, whose y and logarithms are read; key_heads = heads. Gradients lie by strides of their own, rows
// dense.
struct AttentionGradientBf16Call : AttentionBf16Call {
  const uint16_t* dy = nullptr;  // [batch, heads, queries, value_size]
  uint16_t* dq = nullptr;        // as q
  uint16_t* dk = nullptr;        // as k
  uint16_t* dv = nullptr;        // as v
  HeadStrides dy_strides, dq_strides, dk_strides, dv_strides;
};

// Bytes a part, whatever the mask.
int64_t attention_gradient_bf16_scratch(int64_t queries, int64_t keys, int64_t size, int64_t value_size);

}  // namespace lissome

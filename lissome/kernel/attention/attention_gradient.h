// The gradient of attention: for every head the weights of its scores are computed again, a block of queries at a time.
#pragma once

#include "lissome/kernel/attention/attention.h"

namespace lissome {

// As the forward call, whose y and logarithms are read; key_heads = heads. Gradients lie by strides of their own, rows
// dense.
struct AttentionGradientCall : AttentionCall {
  const float* dy = nullptr;  // [batch, heads, queries, value_size]
  float* dq = nullptr;        // as q
  float* dk = nullptr;        // as k
  float* dv = nullptr;        // as v
  HeadStrides dy_strides, dq_strides, dk_strides, dv_strides;
};

int64_t attention_gradient_scratch(int64_t keys, int64_t size, int64_t value_size);  // floats a part

}  // namespace lissome

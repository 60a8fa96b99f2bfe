// As attention.h, for bf16: products of bf16 with sums in f32, softmax in f32, its weights rounded to bf16 once more
// where the processor multiplies bf16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lissome/kernel/attention/attention.h"

namespace lissome {

struct AttentionBf16Call : AttentionShape {
  const uint16_t* q = nullptr;   // [batch, heads, queries, size]
  const uint16_t* k = nullptr;   // [batch, key_heads, keys, size]
  const uint16_t* v = nullptr;   // [batch, key_heads, keys, value_size]
  const void* mask = nullptr;    // as in attention.h, but what is added is bf16
  uint16_t* y = nullptr;         // [batch, heads, queries, value_size]
  float* logarithms = nullptr;   // as in attention.h
  std::byte* scratch = nullptr;  // parts times attention_bf16_scratch() bytes, aligned to 64
};

int64_t attention_bf16_scratch(int64_t keys, int64_t size, int64_t value_size);  // bytes a part

}  // namespace lissome

// softmax(q * k^T * scale + mask) * v for every head, in one pass: scores stay in cache, a block of keys at a time.
#pragma once

#include <cstdint>

namespace lissome {

enum class MaskKind : uint8_t { none, added, chosen };  // f32 that is added; bytes of which 0 excludes

// Elements from batch to batch, head to head, row to row; rows are dense.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
};

// What the f32 and the bf16 form share.
struct AttentionShape {
  int64_t batch = 1, heads = 1, key_heads = 1;  // heads / key_heads query heads share one key head
  int64_t queries = 0, keys = 0, size = 0, value_size = 0;
  HeadStrides q_strides, k_strides, v_strides, mask_strides, y_strides;
  MaskKind mask_kind = MaskKind::none;
  bool causal = false;  // query i sees keys 0..i
  float scale = 1;
};

struct AttentionCall : AttentionShape {
  const float* q = nullptr;    // [batch, heads, queries, size]
  const float* k = nullptr;    // [batch, key_heads, keys, size]
  const float* v = nullptr;    // [batch, key_heads, keys, value_size]
  const void* mask = nullptr;  // [batch, heads, queries, keys], broadcast by strides of zero; rows dense
  float* y = nullptr;          // [batch, heads, queries, value_size]
  float* logarithms =
      nullptr;               // [batch, heads, queries] dense, or null: the logarithm of each query's sum of exp(score)
  float* scratch = nullptr;  // parts times attention_scratch() floats
};

// A query that sees no key at all gives zeros, as PyTorch's does.
int64_t attention_scratch(int64_t keys, int64_t size, int64_t value_size);  // floats a part

}  // namespace lissome

// How the scratch of one part of attention_u8s8 is laid out, in bytes. Static: see split.h.
#pragma once

#include <cstdint>

#include "lissome/kernel/gemm/runs_u8s8.h"

namespace lissome {
namespace {

constexpr int64_t kByteQueries = 24;  // a block
constexpr int64_t kByteKeys = 32768;  // whose products with values fit s32 for sure

struct AttentionU8S8Sizes {
  int64_t key_panels, value_panels, key_numbers, value_numbers, queries, query_numbers, scores, weights;
  int64_t query_stride, score_stride;  // of queries and weights in bytes; of scores in floats
  int64_t total;
};

inline int64_t pad_to_line(int64_t bytes) { return (bytes + 63) / 64 * 64; }
inline int64_t panels_of(int64_t outputs, int64_t inputs) {
  return (outputs + kU8S8Panel - 1) / kU8S8Panel * measure_panel(inputs, {}).panel;
}

inline AttentionU8S8Sizes find_attention_u8s8_sizes(int64_t keys, int64_t size, int64_t value_size) {
  AttentionU8S8Sizes s;
  s.query_stride = pad_to_line(size), s.score_stride = pad_to_line(keys);
  s.key_panels = pad_to_line(panels_of(keys, size));
  s.value_panels = keys / kByteKeys * pad_to_line(panels_of(value_size, kByteKeys)) +
                   pad_to_line(panels_of(value_size, keys % kByteKeys));
  s.key_numbers = pad_to_line(4 * s.score_stride);  // of floats, and as many of s32
  s.value_numbers = pad_to_line(4 * pad_to_line(value_size));
  s.queries = kByteQueries * s.query_stride;
  s.query_numbers = pad_to_line(4 * kByteQueries);
  s.scores = 4 * kByteQueries * s.score_stride;
  s.weights = kByteQueries * s.score_stride;
  const int64_t blocks = (keys + kByteKeys - 1) / kByteKeys;
  s.total = s.key_panels + s.value_panels + 2 * s.key_numbers + (1 + blocks) * s.value_numbers + s.queries +
            3 * s.query_numbers + s.scores + s.weights;
  return s;
}

}  // namespace
}  // namespace lissome

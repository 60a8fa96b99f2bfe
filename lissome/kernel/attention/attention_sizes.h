// How the scratch of one part of attention is laid out, in floats. Static: see split.h.
#pragma once

#include <cstdint>

namespace lissome {
namespace {

constexpr int64_t kQueryBlock = 24;
constexpr int64_t kKeyBlock = 512;

struct AttentionSizes {
  int64_t key_panels;    // [keys / 64][size][64]
  int64_t value_panels;  // [value_size / 64][keys][64]
  int64_t scores;        // [kQueryBlock][keys of a block]
  int64_t sums;          // [kQueryBlock][value_size]
  int64_t score_stride, sum_stride;
};

inline int64_t round_to_panel(int64_t count) { return (count + 63) / 64 * 64; }

inline AttentionSizes find_attention_sizes(int64_t keys, int64_t size, int64_t value_size) {
  AttentionSizes sizes;
  const int64_t padded = round_to_panel(keys);
  sizes.score_stride = padded < kKeyBlock ? padded : kKeyBlock;
  sizes.sum_stride = round_to_panel(value_size);
  sizes.key_panels = padded * size;
  sizes.value_panels = sizes.sum_stride * keys;
  sizes.scores = kQueryBlock * sizes.score_stride;
  sizes.sums = kQueryBlock * sizes.sum_stride;
  return sizes;
}

}  // namespace
}  // namespace lissome

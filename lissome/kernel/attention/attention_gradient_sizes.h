// How the scratch of one part of attention_gradient is laid out, in floats. Static: see split.h.
#pragma once

#include "lissome/kernel/attention/attention_sizes.h"

namespace lissome {
namespace {

constexpr int64_t kGradientQueries = 48;
constexpr int64_t kLine = 16;  // of the cache, in floats

struct AttentionGradientSizes {
  int64_t keys_across;    // [keys / 64][size][64]: keys are columns
  int64_t values_across;  // [keys / 64][value_size][64]
  int64_t keys_down;      // [size / 64][keys][64]
  int64_t weights;        // [kGradientQueries][padded keys]: twice, the second for their gradients
  int64_t rows;           // [size or value_size / 64][kGradientQueries][64]: queries, or rows of dy
  int64_t sums;           // [keys][padded size], then [keys][padded value_size]
  int64_t weight_stride, size_stride, value_stride;

  int64_t total() const { return keys_across + values_across + keys_down + 2 * weights + rows + sums; }
};

inline AttentionGradientSizes find_attention_gradient_sizes(int64_t keys, int64_t size, int64_t value_size) {
  AttentionGradientSizes sizes;
  // Not a power of two: columns are read down, and lines so far apart would share few places of the cache.
  sizes.weight_stride = round_to_panel(keys) + kLine;
  sizes.size_stride = round_to_panel(size), sizes.value_stride = round_to_panel(value_size);
  sizes.keys_across = round_to_panel(keys) * size;
  sizes.values_across = round_to_panel(keys) * value_size;
  sizes.keys_down = sizes.size_stride * keys;
  sizes.weights = kGradientQueries * sizes.weight_stride;
  const int64_t wider = sizes.size_stride > sizes.value_stride ? sizes.size_stride : sizes.value_stride;
  sizes.rows = kGradientQueries * wider;
  sizes.sums = keys * (sizes.size_stride + sizes.value_stride);
  return sizes;
}

}  // namespace
}  // namespace lissome

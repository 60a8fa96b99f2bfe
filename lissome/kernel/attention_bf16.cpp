// The portable form, in double.
#include "lissome/kernel/attention_bf16.h"

#include <algorithm>
#include <cmath>

#include "lissome/kernel/attention_bf16_sizes.h"
#include "lissome/kernel/convert_element.h"
#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/split.h"

namespace lissome {

int64_t attention_bf16_scratch(int64_t keys, int64_t size, int64_t value_size) {
  const int64_t widened =
      find_widened_sizes(keys, size, value_size).total() + 4 * attention_scratch(keys, size, value_size);
  return round_to_cache_line(std::max(widened, find_tiled_sizes(keys, size, value_size).total()));
}

namespace {

struct Query {
  int64_t batch, head, row;
};

int64_t place(const HeadStrides& strides, int64_t batch, int64_t head, int64_t row) {
  return batch * strides.batch + head * strides.head + row * strides.row;
}

// -infinity where the mask or causality excludes the key.
double score(const AttentionBf16Call& call, Query at, int64_t key) {
  if (call.causal && key > at.row) return -INFINITY;
  const uint16_t* q = call.q + place(call.q_strides, at.batch, at.head, at.row);
  const uint16_t* k = call.k + place(call.k_strides, at.batch, at.head / (call.heads / call.key_heads), key);
  double sum = 0;
  for (int64_t d = 0; d < call.size; ++d) sum += static_cast<double>(widen_bf16(q[d])) * widen_bf16(k[d]);
  sum *= call.scale;
  const int64_t mask_at = place(call.mask_strides, at.batch, at.head, at.row) + key;
  if (call.mask_kind == MaskKind::added) sum += widen_bf16(static_cast<const uint16_t*>(call.mask)[mask_at]);
  if (call.mask_kind == MaskKind::chosen && static_cast<const uint8_t*>(call.mask)[mask_at] == 0) return -INFINITY;
  return sum;
}

}  // namespace

void attention_bf16_portable(const AttentionBf16Call& call, int part, int parts) {
  const Range range = split_evenly(call.batch * call.heads * call.queries, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Query at = {i / call.queries / call.heads, i / call.queries % call.heads, i % call.queries};
    double largest = -INFINITY, total = 0;
    bool unknown = false;
    for (int64_t key = 0; key < call.keys; ++key) {
      const double s = score(call, at, key);
      unknown = unknown || std::isnan(s);
      largest = s > largest ? s : largest;
    }
    for (int64_t key = 0; key < call.keys; ++key) total += std::exp(score(call, at, key) - largest);
    uint16_t* y = call.y + place(call.y_strides, at.batch, at.head, at.row);
    const uint16_t* v = call.v + place(call.v_strides, at.batch, at.head / (call.heads / call.key_heads), 0);
    for (int64_t d = 0; d < call.value_size; ++d) {
      double sum = 0;
      for (int64_t key = 0; key < call.keys; ++key) {
        sum += std::exp(score(call, at, key) - largest) / total * widen_bf16(v[key * call.v_strides.row + d]);
      }
      y[d] = narrow_bf16(largest == -INFINITY && !unknown ? 0 : static_cast<float>(sum));
    }
  }
}

}  // namespace lissome

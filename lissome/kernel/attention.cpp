// The portable form, in double.
#include "lissome/kernel/attention.h"

#include <cmath>

#include "lissome/kernel/attention_sizes.h"
#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/split.h"

namespace lissome {

int64_t attention_scratch(int64_t keys, int64_t size, int64_t value_size) {
  const AttentionSizes sizes = find_attention_sizes(keys, size, value_size);
  return sizes.key_panels + sizes.value_panels + sizes.scores + sizes.sums;
}

namespace {

struct Query {
  int64_t batch, head, row;
};

// -infinity where the mask or causality excludes the key.
double score(const AttentionCall& call, Query at, int64_t key) {
  if (call.causal && key > at.row) return -INFINITY;
  const float* q =
      call.q + at.batch * call.q_strides.batch + at.head * call.q_strides.head + at.row * call.q_strides.row;
  const int64_t key_head = at.head / (call.heads / call.key_heads);
  const float* k = call.k + at.batch * call.k_strides.batch + key_head * call.k_strides.head + key * call.k_strides.row;
  double sum = 0;
  for (int64_t d = 0; d < call.size; ++d) sum += static_cast<double>(q[d]) * k[d];
  sum *= call.scale;
  const HeadStrides& m = call.mask_strides;
  const int64_t mask_at = at.batch * m.batch + at.head * m.head + at.row * m.row + key;
  if (call.mask_kind == MaskKind::added) sum += static_cast<const float*>(call.mask)[mask_at];
  if (call.mask_kind == MaskKind::chosen && static_cast<const uint8_t*>(call.mask)[mask_at] == 0) return -INFINITY;
  return sum;
}

}  // namespace

void attention_portable(const AttentionCall& call, int part, int parts) {
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
    float* y = call.y + at.batch * call.y_strides.batch + at.head * call.y_strides.head + at.row * call.y_strides.row;
    for (int64_t key = 0; key < call.keys; ++key) total += std::exp(score(call, at, key) - largest);
    const int64_t key_head = at.head / (call.heads / call.key_heads);
    const float* v = call.v + at.batch * call.v_strides.batch + key_head * call.v_strides.head;
    for (int64_t d = 0; d < call.value_size; ++d) {
      double sum = 0;
      for (int64_t key = 0; key < call.keys; ++key) {
        sum += std::exp(score(call, at, key) - largest) / total * v[key * call.v_strides.row + d];
      }
      y[d] = largest == -INFINITY && !unknown ? 0 : static_cast<float>(sum);
    }
  }
}

}  // namespace lissome

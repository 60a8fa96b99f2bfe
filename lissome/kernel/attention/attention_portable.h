// Attention in double, over f32 or bf16: the oracle of the vector forms. Included by their two portable files alone.
#pragma once

#include <cmath>

#include "lissome/kernel/attention/attention.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

inline float widen_number(float x) { return x; }
inline float widen_number(uint16_t x) { return widen_bf16(x); }
inline void store_number(float* y, float x) { *y = x; }
inline void store_number(uint16_t* y, float x) { *y = narrow_bf16(x); }

struct Query {
  int64_t batch, head, row;
};

inline int64_t place_row(const HeadStrides& strides, int64_t batch, int64_t head, int64_t row) {
  return batch * strides.batch + head * strides.head + row * strides.row;
}

// -infinity where the mask or causality excludes the key. `T`: of what is added by the mask, and of q and k.
template <typename T, typename Call>
double score(const Call& call, Query at, int64_t key) {
  if (call.causal && key > at.row) return -INFINITY;
  const T* q = call.q + place_row(call.q_strides, at.batch, at.head, at.row);
  const T* k = call.k + place_row(call.k_strides, at.batch, at.head / (call.heads / call.key_heads), key);
  double sum = 0;
  for (int64_t d = 0; d < call.size; ++d) sum += static_cast<double>(widen_number(q[d])) * widen_number(k[d]);
  sum *= call.scale;
  const int64_t mask_at = place_row(call.mask_strides, at.batch, at.head, at.row) + key;
  if (call.mask_kind == MaskKind::added) sum += widen_number(static_cast<const T*>(call.mask)[mask_at]);
  if (call.mask_kind == MaskKind::chosen && static_cast<const uint8_t*>(call.mask)[mask_at] == 0) return -INFINITY;
  return sum;
}

template <typename T, typename Call>
void run_attention_portable(const Call& call, int part, int parts) {
  const Range range = split_evenly(call.batch * call.heads * call.queries, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Query at = {i / call.queries / call.heads, i / call.queries % call.heads, i % call.queries};
    double largest = -INFINITY, total = 0;
    bool unknown = false;
    for (int64_t key = 0; key < call.keys; ++key) {
      const double s = score<T>(call, at, key);
      unknown = unknown || std::isnan(s);
      largest = s > largest ? s : largest;
    }
    for (int64_t key = 0; key < call.keys; ++key) total += std::exp(score<T>(call, at, key) - largest);
    const bool sees_none = largest == -INFINITY && !unknown;
    if (call.logarithms) call.logarithms[i] = sees_none ? -INFINITY : static_cast<float>(largest + std::log(total));
    T* y = call.y + place_row(call.y_strides, at.batch, at.head, at.row);
    const T* v = call.v + place_row(call.v_strides, at.batch, at.head / (call.heads / call.key_heads), 0);
    for (int64_t d = 0; d < call.value_size; ++d) {
      double sum = 0;
      for (int64_t key = 0; key < call.keys; ++key) {
        sum += std::exp(score<T>(call, at, key) - largest) / total * widen_number(v[key * call.v_strides.row + d]);
      }
      store_number(y + d, sees_none ? 0 : static_cast<float>(sum));
    }
  }
}

}  // namespace
}  // namespace lissome

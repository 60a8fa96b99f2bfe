// The gradient of attention in double, over f32 or bf16: the oracle of the vector forms. Included by their two portable
// files alone.
#pragma once

#include <vector>

#include "lissome/kernel/attention/attention_portable.h"

namespace lissome {
namespace {

// Of one head.
struct GradientSums {
  std::vector<double> keys, values;
};

// Adds what one query gives to the gradients of its head, and stores its own.
template <typename T, typename Call>
void differentiate_query(const Call& call, Query at, GradientSums& sums) {
  const T* q = call.q + place_row(call.q_strides, at.batch, at.head, at.row);
  const T* y = call.y + place_row(call.y_strides, at.batch, at.head, at.row);
  const T* dy = call.dy + place_row(call.dy_strides, at.batch, at.head, at.row);
  const float logarithm = call.logarithms[(at.batch * call.heads + at.head) * call.queries + at.row];
  double mean = 0;
  for (int64_t d = 0; d < call.value_size; ++d) mean += static_cast<double>(widen_number(dy[d])) * widen_number(y[d]);
  std::vector<double> dq(static_cast<size_t>(call.size));
  for (int64_t key = 0; key < call.keys; ++key) {
    const double s = score<T>(call, at, key), weight = s == -INFINITY ? 0 : std::exp(s - logarithm);
    const T* k = call.k + place_row(call.k_strides, at.batch, at.head, key);
    const T* v = call.v + place_row(call.v_strides, at.batch, at.head, key);
    double slope = 0;
    for (int64_t d = 0; d < call.value_size; ++d) {
      slope += static_cast<double>(widen_number(dy[d])) * widen_number(v[d]);
      sums.values[static_cast<size_t>(key * call.value_size + d)] += weight * widen_number(dy[d]);
    }
    const double ds = weight * (slope - mean) * call.scale;
    for (int64_t d = 0; d < call.size; ++d) {
      dq[static_cast<size_t>(d)] += ds * widen_number(k[d]);
      sums.keys[static_cast<size_t>(key * call.size + d)] += ds * widen_number(q[d]);
    }
  }
  T* to = call.dq + place_row(call.dq_strides, at.batch, at.head, at.row);
  for (int64_t d = 0; d < call.size; ++d) store_number(to + d, static_cast<float>(dq[static_cast<size_t>(d)]));
}

template <typename T, typename Call>
void run_attention_gradient_portable(const Call& call, int part, int parts) {
  const Range range = split_evenly(call.batch * call.heads, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    GradientSums sums = {std::vector<double>(static_cast<size_t>(call.keys * call.size)),
                         std::vector<double>(static_cast<size_t>(call.keys * call.value_size))};
    const int64_t batch = i / call.heads, head = i % call.heads;
    for (int64_t row = 0; row < call.queries; ++row) differentiate_query<T>(call, {batch, head, row}, sums);
    for (int64_t key = 0; key < call.keys; ++key) {
      T* dk = call.dk + place_row(call.dk_strides, batch, head, key);
      T* dv = call.dv + place_row(call.dv_strides, batch, head, key);
      const double *keys = sums.keys.data() + key * call.size, *values = sums.values.data() + key * call.value_size;
      for (int64_t d = 0; d < call.size; ++d) store_number(dk + d, static_cast<float>(keys[d]));
      for (int64_t d = 0; d < call.value_size; ++d) store_number(dv + d, static_cast<float>(values[d]));
    }
  }
}

}  // namespace
}  // namespace lissome

// The portable form, in double.
#include "lissome/kernel/attention_gradient.h"

#include <vector>

#include "lissome/kernel/attention_gradient_sizes.h"
#include "lissome/kernel/attention_portable.h"
#include "lissome/kernel/kernel_table_rows.h"

namespace lissome {
namespace {

// Adds what one query gives to the gradients of its head, and stores its own.
void differentiate_query(const AttentionGradientCall& call, Query at, std::vector<double>& key_sums,
                         std::vector<double>& value_sums) {
  const float* q = call.q + place_row(call.q_strides, at.batch, at.head, at.row);
  const float* y = call.y + place_row(call.y_strides, at.batch, at.head, at.row);
  const float* dy = call.dy + place_row(call.dy_strides, at.batch, at.head, at.row);
  const float logarithm = call.logarithms[(at.batch * call.heads + at.head) * call.queries + at.row];
  double mean = 0;
  for (int64_t d = 0; d < call.value_size; ++d) mean += static_cast<double>(dy[d]) * y[d];
  std::vector<double> dq(static_cast<size_t>(call.size));
  for (int64_t key = 0; key < call.keys; ++key) {
    const double s = score<float>(call, at, key), weight = s == -INFINITY ? 0 : std::exp(s - logarithm);
    const float* k = call.k + place_row(call.k_strides, at.batch, at.head, key);
    const float* v = call.v + place_row(call.v_strides, at.batch, at.head, key);
    double slope = 0;
    for (int64_t d = 0; d < call.value_size; ++d) {
      slope += static_cast<double>(dy[d]) * v[d];
      value_sums[static_cast<size_t>(key * call.value_size + d)] += weight * dy[d];
    }
    const double ds = weight * (slope - mean) * call.scale;
    for (int64_t d = 0; d < call.size; ++d) {
      dq[static_cast<size_t>(d)] += ds * k[d];
      key_sums[static_cast<size_t>(key * call.size + d)] += ds * q[d];
    }
  }
  float* to = call.dq + place_row(call.dq_strides, at.batch, at.head, at.row);
  for (int64_t d = 0; d < call.size; ++d) to[d] = static_cast<float>(dq[static_cast<size_t>(d)]);
}

}  // namespace

int64_t attention_gradient_scratch(int64_t keys, int64_t size, int64_t value_size) {
  return find_attention_gradient_sizes(keys, size, value_size).total();
}

void attention_gradient_portable(const AttentionGradientCall& call, int part, int parts) {
  const Range range = split_evenly(call.batch * call.heads, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    std::vector<double> key_sums(static_cast<size_t>(call.keys * call.size));
    std::vector<double> value_sums(static_cast<size_t>(call.keys * call.value_size));
    const int64_t batch = i / call.heads, head = i % call.heads;
    for (int64_t row = 0; row < call.queries; ++row)
      differentiate_query(call, {batch, head, row}, key_sums, value_sums);
    for (int64_t key = 0; key < call.keys; ++key) {
      float* dk = call.dk + place_row(call.dk_strides, batch, head, key);
      float* dv = call.dv + place_row(call.dv_strides, batch, head, key);
      for (int64_t d = 0; d < call.size; ++d)
        dk[d] = static_cast<float>(key_sums[static_cast<size_t>(key * call.size + d)]);
      for (int64_t d = 0; d < call.value_size; ++d)
        dv[d] = static_cast<float>(value_sums[static_cast<size_t>(key * call.value_size + d)]);
    }
  }
}

}  // namespace lissome

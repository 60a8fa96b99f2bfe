// The portable form: the same numbers one by one.
#include "lissome/kernel/attention/attention_u8s8.h"

#include <cmath>
#include <vector>

#include "lissome/kernel/attention/attention_u8s8_sizes.h"
#include "lissome/kernel/attention/kernel_versions.h"
#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

struct Bytes {
  float scale;  // NaN where a number is none or infinite
  int32_t zero = 0;
  std::vector<int32_t> values;
};

float place_number(float x, float inverse, float low, float high) {
  const float t = x * inverse;
  return std::nearbyint(!(t > low) ? low : t > high ? high : t);
}

// `count` numbers `step` apart, around zero.
Bytes quantize_evenly(const float* x, int64_t step, int64_t count) {
  Bytes bytes{0, 0, {}};
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    bytes.scale = std::fmax(bytes.scale, std::fabs(x[i * step]));
    finite = finite && std::isfinite(x[i * step]);
  }
  bytes.scale /= 127;
  bytes.scale = !finite ? NAN : bytes.scale < 1e-30f ? 1 : bytes.scale;
  for (int64_t i = 0; i < count; ++i)
    bytes.values.push_back(finite ? static_cast<int32_t>(place_number(x[i * step], 1 / bytes.scale, -128, 127)) : 0);
  return bytes;
}

// As quantize_rows.
Bytes quantize_query(const float* q, int64_t count) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  Bytes query{0, 0, {}};
  QuantizeRowsCall call;
  call.x = q, call.y = bytes.data(), call.scales = &query.scale, call.zeros = &query.zero;
  call.rows = 1, call.inputs = call.x_stride = call.y_stride = count;
  quantize_rows_portable(call, 0, 1);
  query.values.assign(bytes.begin(), bytes.end());
  return query;
}

float multiply_bytes(const Bytes& query, const Bytes& key) {
  int32_t sum = 0;
  for (size_t d = 0; d < query.values.size(); ++d) sum += (query.values[d] - query.zero) * key.values[d];
  return static_cast<float>(sum) * (key.scale * query.scale);
}

struct Place {
  int64_t batch, head, key_head, query;
};

// The weights of one query, and what their products are multiplied with.
Bytes weigh_keys(const AttentionU8S8Call& call, const Place& at, const std::vector<Bytes>& keys) {
  const Bytes query = quantize_query(
      call.q + at.batch * call.q_strides.batch + at.head * call.q_strides.head + at.query * call.q_strides.row,
      call.size);
  const int64_t mask_at =
      at.batch * call.mask_strides.batch + at.head * call.mask_strides.head + at.query * call.mask_strides.row;
  std::vector<float> scores;
  float largest = -INFINITY;
  for (int64_t key = 0; key < call.keys; ++key) {
    float score = multiply_bytes(query, keys[static_cast<size_t>(key)]) * call.scale;
    if (call.mask_kind == MaskKind::added) score += static_cast<const float*>(call.mask)[mask_at + key];
    const bool hidden =
        call.mask_kind == MaskKind::chosen && static_cast<const uint8_t*>(call.mask)[mask_at + key] == 0;
    if (hidden || (call.causal && key > at.query)) score = -INFINITY;
    scores.push_back(score);
    largest = score > largest ? score : largest;
  }
  Bytes weights{0, 0, {}};
  float total = 0;
  for (const float score : scores) {
    const double weight = std::nearbyint(255 * std::exp(score - (largest == -INFINITY ? 0.0 : double{largest})));
    total += static_cast<float>(weight);
    weights.values.push_back(std::isnan(weight) ? 0 : static_cast<int32_t>(weight));
  }
  weights.scale = total == 0 ? 0 : 1 / total;
  return weights;
}

}  // namespace

int64_t attention_u8s8_scratch(int64_t keys, int64_t size, int64_t value_size) {
  return find_attention_u8s8_sizes(keys, size, value_size).total;
}

void attention_u8s8_portable(const AttentionU8S8Call& call, int part, int parts) {
  const Range heads = split_evenly(call.batch * call.heads, part, parts);
  for (int64_t i = heads.begin; i < heads.end; ++i) {
    Place at = {i / call.heads, i % call.heads, i % call.heads / (call.heads / call.key_heads), 0};
    const float* k = call.k + at.batch * call.k_strides.batch + at.key_head * call.k_strides.head;
    const float* v = call.v + at.batch * call.v_strides.batch + at.key_head * call.v_strides.head;
    std::vector<Bytes> keys, values;
    for (int64_t key = 0; key < call.keys; ++key)
      keys.push_back(quantize_evenly(k + key * call.k_strides.row, 1, call.size));
    for (int64_t d = 0; d < call.value_size; ++d)
      values.push_back(quantize_evenly(v + d, call.v_strides.row, call.keys));
    for (at.query = 0; at.query < call.queries; ++at.query) {
      const Bytes weights = weigh_keys(call, at, keys);
      float* y =
          call.y + at.batch * call.y_strides.batch + at.head * call.y_strides.head + at.query * call.y_strides.row;
      for (int64_t d = 0; d < call.value_size; ++d) y[d] = multiply_bytes(weights, values[static_cast<size_t>(d)]);
    }
  }
}

}  // namespace lissome

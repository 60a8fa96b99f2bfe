// Attention of bytes over Ints. Keys and values of a head become packed weights of the int8 linear once; then blocks of
// queries are quantized, multiplied with all keys, weighed, and the weights, bytes again, multiplied with the values.
#pragma once

#include "lissome/kernel/gemm/linear_u8s8_body.h"

#include "lissome/kernel/attention/attention_u8s8.h"
#include "lissome/kernel/attention/attention_u8s8_sizes.h"
#include "lissome/kernel/attention/mask_scores_body.h"

namespace lissome {
namespace {

struct ByteHead {
  const float *q, *k, *v;
  const void* mask;
  float* y;
  int8_t *key_panels, *value_panels;
  float *key_scales, *value_scales;
  int32_t *key_sums, *value_sums;  // those of values: [blocks][value_size]
  uint8_t* queries;
  float *query_scales, *weight_scales;
  int32_t* query_zeros;
  float* scores;
  uint8_t* weights;
  AttentionU8S8Sizes sizes;
};

LISSOME_INLINE ByteHead divide_scratch(const AttentionU8S8Call& call, std::byte* at) {
  ByteHead head;
  const AttentionU8S8Sizes& s = head.sizes = find_attention_u8s8_sizes(call.keys, call.size, call.value_size);
  const auto take = [&]<typename T>(int64_t bytes, T*& to) {
    to = reinterpret_cast<T*>(at);
    at += bytes;
  };
  take(s.key_panels, head.key_panels), take(s.value_panels, head.value_panels);
  take(s.key_numbers, head.key_scales), take(s.key_numbers, head.key_sums);
  take(s.value_numbers, head.value_scales);
  take((call.keys + kByteKeys - 1) / kByteKeys * s.value_numbers, head.value_sums);
  take(s.queries, head.queries), take(s.query_numbers, head.query_scales);
  take(s.query_numbers, head.query_zeros), take(s.query_numbers, head.weight_scales);
  take(s.scores, head.scores), take(s.weights, head.weights);
  return head;
}

LISSOME_INLINE int64_t lanes_of(int64_t left) { return left < Floats::kWidth ? left : Floats::kWidth; }

// Scales of -127..127; NaN where `probe`, the sum of all times zero, is.
LISSOME_INLINE Floats find_byte_scales(Floats largest, Floats probe) {
  const Floats scale = largest / fill(127.0f);
  return select_negative(scale - fill(1e-30f), fill(1.0f), scale) + probe;
}

// One key -> s8, four by four where the packed weight has them.
LISSOME_INLINE void pack_key(const AttentionU8S8Call& call, const ByteHead& head, const PanelU8S8& panel, int64_t key) {
  const float* from = head.k + key * call.k_strides.row;
  Floats largest = zeros(), probe = zeros(), sum = zeros();
  for (int64_t d = 0; d < call.size; d += Floats::kWidth) {
    const Floats value = load_first(from + d, lanes_of(call.size - d));
    largest = max_with(absolute_value(value), largest), probe = multiply_add(value, zeros(), probe);
  }
  const Floats spread_probe = fill(sum_lanes(probe));
  alignas(64) float lanes[Floats::kWidth];
  store(lanes, find_byte_scales(fill(max_lanes(largest)), spread_probe));
  const float scale = lanes[0], inverse = 1 / scale;
  uint8_t* bytes = head.queries;  // free while keys are packed; a whole line at least
  for (int64_t d = 0; d < call.size; d += Floats::kWidth) {
    const int64_t left = lanes_of(call.size - d);
    const Floats byte = first_of(quantize_vector(load_first(from + d, left), inverse, 128.0f), left);
    sum = sum + byte;
    store_first(bytes + d, byte, left);
  }
  head.key_scales[key] = scale;
  head.key_sums[key] = static_cast<int32_t>(sum_lanes(sum)) - static_cast<int32_t>(128 * call.size);
  for (int64_t d = call.size; d < 4 * panel.tap_fours; ++d) bytes[d] = 128;
  int8_t* column = head.key_panels + output_offset(panel, key);
  for (int64_t four = 0; four < panel.tap_fours; ++four) {
    const int32_t x = load_four(bytes + 4 * four) ^ static_cast<int32_t>(0x80808080);
    __builtin_memcpy(column + four / panel.step_fours * panel.step + four % panel.step_fours * 64, &x, 4);
  }
}

// Up to a register of columns of the values of `keys`, whose scales are known.
LISSOME_INLINE void pack_value_columns(const AttentionU8S8Call& call, const ByteHead& head, int8_t* panels,
                                       const PanelU8S8& panel, Range keys, int64_t column, int32_t* sums) {
  const int64_t left = lanes_of(call.value_size - column);
  const Floats inverse = fill(1.0f) / load_first(head.value_scales + column, left);
  Floats sum = zeros();
  for (int64_t four = 0; four < panel.tap_fours; ++four) {
    uint8_t bytes[4][16] = {};
    const uint8_t* rows[4];
    for (int64_t j = 0; j < 4; ++j) {
      rows[j] = bytes[j];
      const int64_t key = keys.begin + 4 * four + j;
      if (key >= keys.end) continue;
      const Floats value = load_first(head.v + key * call.v_strides.row + column, left) * inverse;
      const Floats byte = quantize_vector(value, 1.0f, 128.0f);
      sum = sum + byte;
      store_first(bytes[j], byte, left);
      for (int64_t word = 0; word < 16; word += 8) {
        uint64_t eight;
        __builtin_memcpy(&eight, bytes[j] + word, 8);
        eight ^= 0x8080808080808080u;
        __builtin_memcpy(bytes[j] + word, &eight, 8);
      }
    }
    int8_t* to =
        panels + output_offset(panel, column) + four / panel.step_fours * panel.step + four % panel.step_fours * 64;
    interleave_fours(rows, left, reinterpret_cast<uint8_t*>(to));
  }
  alignas(64) float lanes[Floats::kWidth];
  store(lanes, sum);
  const auto offset = static_cast<int32_t>(128 * (keys.end - keys.begin));
  for (int64_t n = 0; n < left; ++n) sums[column + n] = static_cast<int32_t>(lanes[n]) - offset;
}

LISSOME_INLINE Range find_key_block(const AttentionU8S8Call& call, int64_t first) {
  return {first, call.keys - first < kByteKeys ? call.keys : first + kByteKeys};
}

LISSOME_INLINE void pack_head(const AttentionU8S8Call& call, const ByteHead& head) {
  const PanelU8S8 key_panel = measure_panel(call.size, {});
  for (int64_t key = 0; key < call.keys; ++key) pack_key(call, head, key_panel, key);
  for (int64_t column = 0; column < call.value_size; column += Floats::kWidth) {
    const int64_t left = lanes_of(call.value_size - column);
    Floats largest = zeros(), probe = zeros();
    for (int64_t key = 0; key < call.keys; ++key) {
      const Floats value = load_first(head.v + key * call.v_strides.row + column, left);
      largest = max_with(absolute_value(value), largest), probe = multiply_add(value, zeros(), probe);
    }
    store_first(head.value_scales + column, find_byte_scales(largest, probe), left);
    int8_t* panels = head.value_panels;
    int32_t* sums = head.value_sums;
    for (int64_t first = 0; first < call.keys; first += kByteKeys) {
      const Range keys = find_key_block(call, first);
      const PanelU8S8 panel = measure_panel(keys.end - keys.begin, {});
      pack_value_columns(call, head, panels, panel, keys, column, sums);
      panels += pad_to_line(panels_of(call.value_size, keys.end - keys.begin));
      sums += head.sizes.value_numbers / 4;
    }
  }
}

// A row of scores -> bytes; returns what they are to be multiplied with.
LISSOME_INLINE float weigh_bytes(const float* scores, int64_t count, float largest, uint8_t* weights) {
  const float shift = largest == -__builtin_inff() ? 0 : largest;  // nothing is seen: weights of zero
  Floats total = zeros();
  for (int64_t n = 0; n < count; n += Floats::kWidth) {
    const int64_t left = lanes_of(count - n);
    const Floats weight = round_to_nearest(exponential(load(scores + n) - fill(shift)) * fill(255.0f));
    total = total + first_of(weight, left);
    store_first(weights + n, weight, left);
  }
  const float sum = sum_lanes(total);
  return sum == 0 ? 0 : 1 / sum;
}

LISSOME_INLINE void run_byte_queries(const AttentionU8S8Call& call, const ByteHead& head, int64_t query, int64_t rows) {
  QuantizeRowsCall quantize;
  quantize.y = head.queries, quantize.y_stride = head.sizes.query_stride;
  quantize.scales = head.query_scales, quantize.zeros = head.query_zeros, quantize.inputs = call.size;
  for (int64_t r = 0; r < rows; ++r) quantize_row(quantize, head.q + (query + r) * call.q_strides.row, r);
  LinearU8S8Call linear;
  linear.x = head.queries, linear.x_stride = head.sizes.query_stride, linear.weight = head.key_panels;
  linear.multiplier = head.key_scales, linear.weight_sums = head.key_sums;
  linear.row_scales = head.query_scales, linear.row_zeros = head.query_zeros;
  linear.y = head.scores, linear.y_stride = head.sizes.score_stride;
  linear.rows = rows, linear.inputs = call.size, linear.outputs = call.keys;
  run_linear_u8s8(linear, 0, 1);
  int32_t no_zeros[kByteQueries] = {};
  for (int64_t r = 0; r < rows; ++r) {
    float* scores = head.scores + r * head.sizes.score_stride;
    const float largest = mask_scores(call, head.mask, scores, query + r, {0, call.keys});
    head.weight_scales[r] = weigh_bytes(scores, call.keys, largest, head.weights + r * head.sizes.score_stride);
  }
  const int8_t* panels = head.value_panels;
  const int32_t* sums = head.value_sums;
  for (int64_t first = 0; first < call.keys; first += kByteKeys) {
    const Range keys = find_key_block(call, first);
    LinearU8S8Call values;
    values.x = head.weights + first, values.x_stride = head.sizes.score_stride, values.weight = panels;
    values.multiplier = head.value_scales, values.weight_sums = sums;
    values.row_scales = head.weight_scales, values.row_zeros = no_zeros;
    values.y = head.y + query * call.y_strides.row, values.y_stride = call.y_strides.row;
    if (first > 0) values.residual = static_cast<float*>(values.y), values.residual_stride = values.y_stride;
    values.rows = rows, values.inputs = keys.end - keys.begin, values.outputs = call.value_size;
    run_linear_u8s8(values, 0, 1);
    panels += pad_to_line(panels_of(call.value_size, values.inputs));
    sums += head.sizes.value_numbers / 4;
  }
}

LISSOME_INLINE void run_attention_u8s8(const AttentionU8S8Call& call, int part, int parts) {
  // Work is cut as in attention_body.h: a part packs the heads that it meets.
  const int64_t blocks = (call.queries + kByteQueries - 1) / kByteQueries;
  const Range range = split_evenly(call.batch * call.heads * blocks, part, parts);
  ByteHead head =
      divide_scratch(call, call.scratch + part * attention_u8s8_scratch(call.keys, call.size, call.value_size));
  int64_t packed = -1;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / blocks / call.heads, h = i / blocks % call.heads, query = i % blocks * kByteQueries;
    const int64_t key_head = h / (call.heads / call.key_heads);
    head.q = call.q + b * call.q_strides.batch + h * call.q_strides.head;
    head.k = call.k + b * call.k_strides.batch + key_head * call.k_strides.head;
    head.v = call.v + b * call.v_strides.batch + key_head * call.v_strides.head;
    head.y = call.y + b * call.y_strides.batch + h * call.y_strides.head;
    const int64_t mask_at = b * call.mask_strides.batch + h * call.mask_strides.head;
    head.mask = static_cast<const char*>(call.mask) + mask_at * (call.mask_kind == MaskKind::added ? 4 : 1);
    if (packed != b * call.key_heads + key_head) {
      packed = b * call.key_heads + key_head;
      pack_head(call, head);
    }
    run_byte_queries(call, head, query, call.queries - query < kByteQueries ? call.queries - query : kByteQueries);
  }
}

}  // namespace
}  // namespace lissome

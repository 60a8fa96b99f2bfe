// The gradient of attention over Floats. With P the weights of a block of queries and dP = dy v^T their gradients:
//   dv += P^T dy,  dS = P * (dP - sum of dy * y) * scale,  dq = dS k,  dk += dS^T q
// All five products run on the tiles of tile_f32_body.h; P^T and dS^T are read down their columns.
#pragma once

#include "lissome/kernel/attention/attention_body.h"

#include "lissome/kernel/attention/attention_gradient.h"
#include "lissome/kernel/attention/attention_gradient_sizes.h"
#include "lissome/kernel/gemm/matmul_f32_body.h"

namespace lissome {
namespace {

struct HeadGradient {
  Head head;  // q, k, v and the mask
  const float *y, *dy, *logarithms;
  float *dq, *dk, *dv;
  float *keys_across, *values_across, *keys_down, *weights, *slopes, *rows, *key_sums, *value_sums;
  AttentionGradientSizes sizes;
};

// Rows of [count][width], `stride` apart, as panels of 64 columns: [width / 64][count][64].
void pack_rows(const float* from, int64_t stride, int64_t count, int64_t width, float* panels) {
  for (int64_t first = 0; first < width; first += kLinearPanel, panels += count * kLinearPanel) {
    const int64_t columns = width - first < kLinearPanel ? width - first : kLinearPanel;
    for (int64_t m = 0; m < count; ++m) {
      for (int64_t n = 0; n < kLinearPanel; n += Floats::kWidth) {
        const int64_t left = columns - n;
        const float* at = from + m * stride + first + n;
        store(panels + m * kLinearPanel + n, left >= Floats::kWidth ? load(at)
                                             : left > 0             ? load_first(at, left)
                                                                    : zeros());
      }
    }
  }
}

// A few numbers: a call of memcpy would take longer than they do.
LISSOME_INLINE void copy_row(const float* from, int64_t count, float* to) {
  int64_t n = 0;
  for (; n + Floats::kWidth <= count; n += Floats::kWidth) store(to + n, load(from + n));
  for (; n < count; ++n) to[n] = from[n];
}

// y[m][...] += the sum over k of x[k][m] * panel[k][...].
struct ColumnProduct {
  const float* x;
  const float* panel;
  float* y;
  int64_t x_stride, y_stride, inputs;
};

struct ColumnTile {
  template <int Rows, int Vectors>
  static void run(const ColumnProduct& product, TilePlace place, Visit& visit) {
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = product.x + place.row + r;
    Floats sums[Rows][Vectors];
    float* y = product.y + place.row * product.y_stride + place.output;
    load_sums(y, product.y_stride, sums);
    accumulate_strided(rows, product.x_stride, product.panel + place.output, product.inputs, sums, visit.ahead);
    store_sums(y, product.y_stride, sums);
  }
};

void add_column_product(const HeadGradient& head, const float* x, int64_t queries, int64_t keys, float* y,
                        int64_t width) {
  const int64_t stride = round_to_panel(width);
  for (int64_t n = 0; n < width; n += kLinearPanel) {
    const ColumnProduct product = {x, head.rows + n * queries, y + n, head.sizes.weight_stride, stride, queries};
    const int64_t outputs = width - n < kLinearPanel ? width - n : kLinearPanel;
    Visit visit = {0, queries, true, true};
    for (int64_t output = 0; output < outputs; output += kTileVectors * Floats::kWidth) {
      run_tile_column<ColumnTile>(product, output, outputs, {0, keys}, visit);
    }
  }
}

// Scores of queries with keys become weights; their gradients become gradients of scores.
void weigh_block(const AttentionGradientCall& call, const HeadGradient& head, int64_t query, int64_t rows,
                 int64_t keys) {
  for (int64_t r = 0; r < rows; ++r) {
    float* weights = head.weights + r * head.sizes.weight_stride;
    float* slopes = head.slopes + r * head.sizes.weight_stride;
    mask_scores(call, head.head.mask, weights, query + r, {0, keys});
    const float *y = head.y + (query + r) * call.y_strides.row, *dy = head.dy + (query + r) * call.dy_strides.row;
    Floats products = zeros();
    for (int64_t d = 0; d < call.value_size; d += Floats::kWidth) {
      const int64_t left = call.value_size - d < Floats::kWidth ? call.value_size - d : Floats::kWidth;
      products = multiply_add(load_first(y + d, left), load_first(dy + d, left), products);
    }
    const float logarithm = head.logarithms[query + r];
    const Floats shift = fill(logarithm == -__builtin_inff() ? 0 : logarithm), mean = fill(sum_lanes(products));
    for (int64_t n = 0; n < keys; n += Floats::kWidth) {
      const Floats weight = exponential(load(weights + n) - shift);
      store(weights + n, weight);
      store(slopes + n, weight * (load(slopes + n) - mean) * fill(call.scale));
    }
  }
}

void differentiate_block(const AttentionGradientCall& call, const HeadGradient& head, int64_t query, int64_t rows) {
  const int64_t stride = head.sizes.weight_stride;
  const int64_t keys = call.causal && query + rows < call.keys ? query + rows : call.keys;
  const float *q = head.head.q + query * call.q_strides.row, *dy = head.dy + query * call.dy_strides.row;
  for (int64_t n = 0; n < keys; n += kLinearPanel) {
    const int64_t count = keys - n < kLinearPanel ? keys - n : kLinearPanel;
    multiply_panel(
        {q, head.keys_across + n * call.size, head.weights + n, call.q_strides.row, stride, call.size, false}, rows,
        count);
    multiply_panel({dy, head.values_across + n * call.value_size, head.slopes + n, call.dy_strides.row, stride,
                    call.value_size, false},
                   rows, count);
  }
  weigh_block(call, head, query, rows, keys);
  pack_rows(dy, call.dy_strides.row, rows, call.value_size, head.rows);
  add_column_product(head, head.weights, rows, keys, head.value_sums, call.value_size);
  pack_rows(q, call.q_strides.row, rows, call.size, head.rows);
  add_column_product(head, head.slopes, rows, keys, head.key_sums, call.size);
  // The weights are read no more: dq is made in their place, [rows][64] for each panel.
  for (int64_t n = 0; n < call.size; n += kLinearPanel) {
    const int64_t count = call.size - n < kLinearPanel ? call.size - n : kLinearPanel;
    multiply_panel({head.slopes, head.keys_down + n * call.keys, head.weights, stride, kLinearPanel, keys, false}, rows,
                   count);
    for (int64_t r = 0; r < rows; ++r) {
      copy_row(head.weights + r * kLinearPanel, count, head.dq + (query + r) * call.dq_strides.row + n);
    }
  }
}

void differentiate_head(const AttentionGradientCall& call, const HeadGradient& head) {
  pack_across(head.head.k, call.k_strides.row, call.keys, call.size, head.keys_across);
  pack_across(head.head.v, call.v_strides.row, call.keys, call.value_size, head.values_across);
  pack_rows(head.head.k, call.k_strides.row, call.keys, call.size, head.keys_down);
  __builtin_memset(head.key_sums, 0, static_cast<size_t>(head.sizes.sums) * sizeof(float));
  for (int64_t query = 0; query < call.queries; query += kGradientQueries) {
    const int64_t left = call.queries - query;
    differentiate_block(call, head, query, left < kGradientQueries ? left : kGradientQueries);
  }
  for (int64_t key = 0; key < call.keys; ++key) {
    copy_row(head.key_sums + key * head.sizes.size_stride, call.size, head.dk + key * call.dk_strides.row);
    copy_row(head.value_sums + key * head.sizes.value_stride, call.value_size, head.dv + key * call.dv_strides.row);
  }
}

HeadGradient place_scratch(const AttentionGradientCall& call, int part) {
  HeadGradient head;
  head.sizes = find_attention_gradient_sizes(call.keys, call.size, call.value_size);
  head.keys_across = call.scratch + part * head.sizes.total();
  head.values_across = head.keys_across + head.sizes.keys_across;
  head.keys_down = head.values_across + head.sizes.values_across;
  head.weights = head.keys_down + head.sizes.keys_down;
  head.slopes = head.weights + head.sizes.weights;
  head.rows = head.slopes + head.sizes.weights;
  head.key_sums = head.rows + head.sizes.rows;
  head.value_sums = head.key_sums + call.keys * head.sizes.size_stride;
  return head;
}

LISSOME_INLINE void run_attention_gradient(const AttentionGradientCall& call, int part, int parts) {
  HeadGradient head = place_scratch(call, part);
  const Range range = split_evenly(call.batch * call.heads, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / call.heads, h = i % call.heads;
    const auto place = [&](auto* data, const HeadStrides& strides) {
      return data + b * strides.batch + h * strides.head;
    };
    head.head.q = place(call.q, call.q_strides), head.head.k = place(call.k, call.k_strides);
    head.head.v = place(call.v, call.v_strides), head.y = place(call.y, call.y_strides);
    head.head.mask = static_cast<const char*>(call.mask) + (b * call.mask_strides.batch + h * call.mask_strides.head) *
                                                               (call.mask_kind == MaskKind::added ? 4 : 1);
    head.dy = place(call.dy, call.dy_strides), head.dq = place(call.dq, call.dq_strides);
    head.dk = place(call.dk, call.dk_strides), head.dv = place(call.dv, call.dv_strides);
    head.logarithms = call.logarithms + i * call.queries;
    differentiate_head(call, head);
  }
}

}  // namespace
}  // namespace lissome

// Attention over Floats. Keys and values of a head are packed into panels once; then blocks of queries meet blocks of
// keys: scores by the tiles of tile_f32_body.h, a running maximum and total per query, sums of values by tiles again.
#pragma once

#include "lissome/kernel/isa/tile_f32_body.h"

#include "lissome/kernel/attention/attention.h"
#include "lissome/kernel/attention/attention_sizes.h"
#include "lissome/kernel/attention/mask_scores_body.h"
#include "lissome/kernel/gemm/pack_columns_body.h"

namespace lissome {
namespace {

struct Head {
  const float *q, *k, *v;
  const void* mask;
  float* y;
  float* logarithms;  // of the head, or null
  float *key_panels, *value_panels, *scores, *sums;
  AttentionSizes sizes;
};

// What is known of a block of queries so far.
struct Running {
  float largest[kQueryBlock];
  float total[kQueryBlock];
};

// Rows of [keys][width] as panels of 64 keys: [keys / 64][width][64].
void pack_across(const float* from, int64_t stride, int64_t keys, int64_t width, float* panels) {
  for (int64_t first = 0; first < keys; first += kLinearPanel) {
    const int64_t count = keys - first < kLinearPanel ? keys - first : kLinearPanel;
    pack_columns(from + first * stride, stride, count, width, panels + first * width);
  }
}

void pack_keys(const AttentionCall& call, const Head& head) {
  pack_across(head.k, call.k_strides.row, call.keys, call.size, head.key_panels);
}

void pack_values(const AttentionCall& call, const Head& head) {
  for (int64_t first = 0; first < call.value_size; first += kLinearPanel) {
    float* panel = head.value_panels + first * call.keys;
    const int64_t count = call.value_size - first < kLinearPanel ? call.value_size - first : kLinearPanel;
    for (int64_t key = 0; key < call.keys; ++key) {
      const float* from = head.v + key * call.v_strides.row + first;
      float* row = panel + key * kLinearPanel;
      for (int64_t n = 0; n < kLinearPanel; n += Floats::kWidth) {
        const int64_t left = count - n;
        store(row + n, left >= Floats::kWidth ? load(from + n) : left > 0 ? load_first(from + n, left) : zeros());
      }
    }
  }
}

// Rows times one panel, stored (or added) densely: y[r * y_stride ...], `outputs` of 64 columns.
struct PanelProduct {
  const float* x;
  const float* panel;
  float* y;
  int64_t x_stride, y_stride, inputs;
  bool adds;
};

struct PanelTile {
  template <int Rows, int Vectors>
  static void run(const PanelProduct& product, TilePlace place, Visit& visit) {
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = product.x + (place.row + r) * product.x_stride;
    Floats sums[Rows][Vectors];
    clear_sums(sums);
    accumulate(rows, product.panel + place.output, product.inputs, sums, visit.ahead);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      float* y = product.y + (place.row + r) * product.y_stride + place.output;
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        Floats value = sums[r][v];
        if (product.adds) value = value + load(y + v * Floats::kWidth);
        store(y + v * Floats::kWidth, value);
      }
    }
  }
};

void multiply_panel(const PanelProduct& product, int64_t rows, int64_t outputs) {
  Visit visit = {0, product.inputs, true, true};
  for (int64_t output = 0; output < outputs; output += kTileVectors * Floats::kWidth) {
    run_tile_column<PanelTile>(product, output, outputs, {0, rows}, visit);
  }
}

// Turns a row of scores into weights against the running maximum, and rescales what was summed before.
void weigh_row(const Head& head, float* scores, int64_t count, int64_t r, float largest, Running& running,
               bool first_block) {
  const float before = running.largest[r];
  const float top = largest > before ? largest : before;
  const float shift = top == -__builtin_inff() ? 0 : top;  // nothing seen yet: weights of zero
  Floats total = zeros();
  for (int64_t n = 0; n < count; n += Floats::kWidth) {
    const Floats weight = exponential(load(scores + n) - fill(shift));
    store(scores + n, weight);
    total = total + weight;
  }
  const float sum = sum_lanes(total);
  if (first_block) {
    running.total[r] = sum;
  } else if (top != before) {
    alignas(64) float factor[Floats::kWidth];
    store(factor, exponential(fill(before - shift)));
    running.total[r] = running.total[r] * factor[0] + sum;
    float* sums = head.sums + r * head.sizes.sum_stride;
    for (int64_t n = 0; n < head.sizes.sum_stride; n += Floats::kWidth) {
      store(sums + n, load(sums + n) * fill(factor[0]));
    }
  } else {
    running.total[r] += sum;
  }
  running.largest[r] = top;
}

void run_query_block(const AttentionCall& call, const Head& head, int64_t query, int64_t rows) {
  Running running;
  for (int64_t r = 0; r < rows; ++r) running.largest[r] = -__builtin_inff(), running.total[r] = 0;
  const int64_t end = call.causal && query + rows < call.keys ? query + rows : call.keys;
  for (int64_t key = 0; key < end; key += kKeyBlock) {
    const Range keys = {key, key + kKeyBlock < end ? key + kKeyBlock : end};
    const int64_t count = keys.end - keys.begin;
    for (int64_t n = 0; n < count; n += kLinearPanel) {
      multiply_panel({head.q + query * call.q_strides.row, head.key_panels + (key + n) * call.size, head.scores + n,
                      call.q_strides.row, head.sizes.score_stride, call.size, false},
                     rows, count - n < kLinearPanel ? count - n : kLinearPanel);
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* scores = head.scores + r * head.sizes.score_stride;
      const float largest = mask_scores(call, head.mask, scores, query + r, keys);
      const int64_t whole = (count + Floats::kWidth - 1) / Floats::kWidth * Floats::kWidth;
      weigh_row(head, scores, whole, r, largest, running, key == 0);
    }
    for (int64_t n = 0; n < call.value_size; n += kLinearPanel) {
      const int64_t outputs = call.value_size - n < kLinearPanel ? call.value_size - n : kLinearPanel;
      multiply_panel({head.scores, head.value_panels + n * call.keys + key * kLinearPanel, head.sums + n,
                      head.sizes.score_stride, head.sizes.sum_stride, count, key > 0},
                     rows, outputs);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (head.logarithms) head.logarithms[query + r] = running.largest[r] + __builtin_logf(running.total[r]);
    const Floats factor = fill(running.total[r] == 0 ? 0.0f : 1 / running.total[r]);
    const float* sums = head.sums + r * head.sizes.sum_stride;
    float* y = head.y + (query + r) * call.y_strides.row;
    for (int64_t n = 0; n < call.value_size; n += Floats::kWidth) {
      const int64_t left = call.value_size - n < Floats::kWidth ? call.value_size - n : Floats::kWidth;
      store_first(y + n, load(sums + n) * factor, left);
    }
  }
}

LISSOME_INLINE void run_attention(const AttentionCall& call, int part, int parts) {
  // Work is cut at blocks of queries, so that a single head can be shared too; a part packs the heads that it meets.
  const int64_t blocks = (call.queries + kQueryBlock - 1) / kQueryBlock;
  const Range range = split_evenly(call.batch * call.heads * blocks, part, parts);
  Head head;
  head.sizes = find_attention_sizes(call.keys, call.size, call.value_size);
  head.key_panels = call.scratch + part * attention_scratch(call.keys, call.size, call.value_size);
  head.value_panels = head.key_panels + head.sizes.key_panels;
  head.scores = head.value_panels + head.sizes.value_panels;
  head.sums = head.scores + head.sizes.scores;
  int64_t packed = -1;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / blocks / call.heads, h = i / blocks % call.heads, query = i % blocks * kQueryBlock;
    const int64_t key_head = h / (call.heads / call.key_heads);
    head.q = call.q + b * call.q_strides.batch + h * call.q_strides.head;
    head.k = call.k + b * call.k_strides.batch + key_head * call.k_strides.head;
    head.v = call.v + b * call.v_strides.batch + key_head * call.v_strides.head;
    head.logarithms = call.logarithms ? call.logarithms + (b * call.heads + h) * call.queries : nullptr;
    head.y = call.y + b * call.y_strides.batch + h * call.y_strides.head;
    const int64_t mask_at = b * call.mask_strides.batch + h * call.mask_strides.head;
    head.mask = static_cast<const char*>(call.mask) + mask_at * (call.mask_kind == MaskKind::added ? 4 : 1);
    if (packed != b * call.key_heads + key_head) {
      packed = b * call.key_heads + key_head;
      pack_keys(call, head);
      pack_values(call, head);
    }
    const int64_t rows = call.queries - query < kQueryBlock ? call.queries - query : kQueryBlock;
    run_query_block(call, head, query, rows);
  }
}

}  // namespace
}  // namespace lissome

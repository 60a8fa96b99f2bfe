// bf16 attention over Floats: operands are widened, which is exact, and attention_body.h does the rest in f32.
#pragma once

#include "lissome/kernel/attention/attention_body.h"
#include "lissome/kernel/gemm/widen_rows_body.h"

#include "lissome/kernel/attention/attention_bf16.h"
#include "lissome/kernel/attention/attention_bf16_sizes.h"

namespace lissome {
namespace {

// The f32 call over one head whose rows are widened and dense.
AttentionCall describe_widened(const AttentionBf16Call& call) {
  AttentionCall widened;
  widened.queries = call.queries, widened.keys = call.keys, widened.size = call.size;
  widened.value_size = call.value_size;
  widened.q_strides.row = widened.k_strides.row = call.size;
  widened.v_strides.row = widened.y_strides.row = call.value_size;
  widened.mask_strides.row = call.mask_kind == MaskKind::added ? call.keys : call.mask_strides.row;
  widened.mask_kind = call.mask_kind, widened.causal = call.causal, widened.scale = call.scale;
  return widened;
}

// Takes places in the scratch of one part, in order.
struct WidenedScratch {
  float *keys, *values, *queries, *results, *mask, *rest;

  WidenedScratch(const AttentionBf16Call& call, int part) {
    const WidenedSizes sizes = find_widened_sizes(call.keys, call.size, call.value_size);
    std::byte* at = call.scratch + part * attention_bf16_scratch(call.keys, call.size, call.value_size);
    keys = reinterpret_cast<float*>(at);
    values = reinterpret_cast<float*>(at += sizes.keys);
    queries = reinterpret_cast<float*>(at += sizes.values);
    results = reinterpret_cast<float*>(at += sizes.queries);
    mask = reinterpret_cast<float*>(at += sizes.results);
    rest = reinterpret_cast<float*>(at + sizes.mask);
  }
};

LISSOME_INLINE void run_attention_bf16(const AttentionBf16Call& call, int part, int parts) {
  const int64_t blocks = (call.queries + kQueryBlock - 1) / kQueryBlock;
  const Range range = split_evenly(call.batch * call.heads * blocks, part, parts);
  const AttentionCall widened = describe_widened(call);
  const WidenedScratch scratch(call, part);
  Head head = {};
  head.sizes = find_attention_sizes(call.keys, call.size, call.value_size);
  head.k = scratch.keys, head.v = scratch.values;
  head.key_panels = scratch.rest;
  head.value_panels = head.key_panels + head.sizes.key_panels;
  head.scores = head.value_panels + head.sizes.value_panels;
  head.sums = head.scores + head.sizes.scores;
  int64_t packed = -1;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / blocks / call.heads, h = i / blocks % call.heads, query = i % blocks * kQueryBlock;
    const int64_t key_head = h / (call.heads / call.key_heads);
    const int64_t rows = call.queries - query < kQueryBlock ? call.queries - query : kQueryBlock;
    if (packed != b * call.key_heads + key_head) {
      packed = b * call.key_heads + key_head;
      widen_rows(call.k + b * call.k_strides.batch + key_head * call.k_strides.head, call.k_strides.row, call.keys,
                 call.size, scratch.keys);
      widen_rows(call.v + b * call.v_strides.batch + key_head * call.v_strides.head, call.v_strides.row, call.keys,
                 call.value_size, scratch.values);
      pack_keys(widened, head);
      pack_values(widened, head);
    }
    widen_rows(call.q + b * call.q_strides.batch + h * call.q_strides.head + query * call.q_strides.row,
               call.q_strides.row, rows, call.size, scratch.queries);
    const int64_t mask_at = b * call.mask_strides.batch + h * call.mask_strides.head;
    head.mask = static_cast<const uint8_t*>(call.mask) + mask_at;
    if (call.mask_kind == MaskKind::added) {
      widen_rows(static_cast<const uint16_t*>(call.mask) + mask_at + query * call.mask_strides.row,
                 call.mask_strides.row, rows, call.keys, scratch.mask);
      head.mask = scratch.mask - query * call.keys;
    }
    // Only this block of rows is there; the f32 kernel counts rows from the head's first.
    head.q = scratch.queries - query * call.size;
    head.y = scratch.results - query * call.value_size;
    head.logarithms = call.logarithms ? call.logarithms + (b * call.heads + h) * call.queries : nullptr;
    run_query_block(widened, head, query, rows);
    narrow_rows(scratch.results, rows, call.value_size,
                call.y + b * call.y_strides.batch + h * call.y_strides.head + query * call.y_strides.row,
                call.y_strides.row);
  }
}

}  // namespace
}  // namespace lissome

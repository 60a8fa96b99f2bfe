// The gradient of bf16 attention over Floats: a head's operands are widened, which is exact, and
// attention_gradient_body.h does the rest in f32.
#pragma once

#include "lissome/kernel/attention/attention_gradient_body.h"
#include "lissome/kernel/gemm/widen_rows_body.h"

#include "lissome/kernel/attention/attention_gradient_bf16.h"
#include "lissome/kernel/attention/attention_gradient_bf16_sizes.h"

namespace lissome {
namespace {

// The f32 call over one head whose rows are widened and dense.
AttentionGradientCall describe_widened(const AttentionGradientBf16Call& call) {
  AttentionGradientCall widened;
  static_cast<AttentionShape&>(widened) = call;
  widened.q_strides.row = widened.dq_strides.row = widened.k_strides.row = widened.dk_strides.row = call.size;
  widened.v_strides.row = widened.dv_strides.row = widened.y_strides.row = widened.dy_strides.row = call.value_size;
  if (call.mask_kind == MaskKind::added) widened.mask_strides.row = call.keys;
  return widened;
}

// Takes places in the scratch of one part, in order.
struct WidenedGradient {
  float *q, *k, *v, *dq, *dk, *dv, *y, *dy, *mask;
  HeadGradient head;

  WidenedGradient(const AttentionGradientBf16Call& call, const AttentionGradientCall& widened, int part) {
    const WidenedGradientSizes sizes = find_widened_gradient_sizes(call.queries, call.keys, call.size, call.value_size);
    std::byte* at =
        call.scratch + part * attention_gradient_bf16_scratch(call.queries, call.keys, call.size, call.value_size);
    const auto take = [&](int64_t bytes) {
      auto* place = reinterpret_cast<float*>(at);
      at += bytes;
      return place;
    };
    q = take(sizes.queries), dq = take(sizes.queries), k = take(sizes.keys), dk = take(sizes.keys);
    v = take(sizes.key_values), dv = take(sizes.key_values);
    y = take(sizes.query_values), dy = take(sizes.query_values), mask = take(sizes.mask);
    AttentionGradientCall rest = widened;
    rest.scratch = reinterpret_cast<float*>(at);
    head = place_scratch(rest, 0);
    head.head.q = q, head.head.k = k, head.head.v = v, head.y = y, head.dy = dy;
    head.dq = dq, head.dk = dk, head.dv = dv;
  }
};

LISSOME_INLINE void run_attention_gradient_bf16(const AttentionGradientBf16Call& call, int part, int parts) {
  const AttentionGradientCall widened = describe_widened(call);
  WidenedGradient place(call, widened, part);
  const Range range = split_evenly(call.batch * call.heads, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / call.heads, h = i % call.heads;
    const auto find = [&](auto* data, const HeadStrides& strides) {
      return data + b * strides.batch + h * strides.head;
    };
    widen_rows(find(call.q, call.q_strides), call.q_strides.row, call.queries, call.size, place.q);
    widen_rows(find(call.k, call.k_strides), call.k_strides.row, call.keys, call.size, place.k);
    widen_rows(find(call.v, call.v_strides), call.v_strides.row, call.keys, call.value_size, place.v);
    widen_rows(find(call.y, call.y_strides), call.y_strides.row, call.queries, call.value_size, place.y);
    widen_rows(find(call.dy, call.dy_strides), call.dy_strides.row, call.queries, call.value_size, place.dy);
    place.head.head.mask = find(static_cast<const uint8_t*>(call.mask), call.mask_strides);
    if (call.mask_kind == MaskKind::added) {
      widen_rows(find(static_cast<const uint16_t*>(call.mask), call.mask_strides), call.mask_strides.row, call.queries,
                 call.keys, place.mask);
      place.head.head.mask = place.mask;
    }
    place.head.logarithms = call.logarithms + i * call.queries;
    differentiate_head(widened, place.head);
    narrow_rows(place.dq, call.queries, call.size, find(call.dq, call.dq_strides), call.dq_strides.row);
    narrow_rows(place.dk, call.keys, call.size, find(call.dk, call.dk_strides), call.dk_strides.row);
    narrow_rows(place.dv, call.keys, call.value_size, find(call.dv, call.dv_strides), call.dv_strides.row);
  }
}

}  // namespace
}  // namespace lissome

// The gradient of bf16 attention with AVX-512 BF16. Scores stand as [keys][queries], a block of keys at a time, so that
// what belongs to a query lies along the lanes. With P the weights, log the logarithms of their sums:
//   P^T = exp(k q^T - log),  dS^T = P^T * (v dy^T - sums of dy * y) * scale
//   dv = P^T dy,  dk = dS^T q,  dq^T += k^T dS
#pragma once

#include "lissome/kernel/attention/attention_bf16_pairs_body.h"

#include "lissome/kernel/attention/attention_gradient_bf16.h"
#include "lissome/kernel/attention/attention_gradient_bf16_sizes.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

// Places in the scratch of one part, of one head.
struct TiledGradient {
  TiledGradientSizes sizes;
  uint16_t *queries_across, *queries_down, *slopes_across, *slopes_down;  // q and dy in tiles
  uint16_t *key_rows, *key_columns, *value_rows;
  uint16_t *weights, *slopes, *slope_tiles;  // of a block of keys
  float *logarithms, *means, *scores, *products, *query_sums, *key_sums;

  TiledGradient(const AttentionGradientBf16Call& call, int part)
      : sizes(find_tiled_gradient_sizes(call.queries, call.keys, call.size, call.value_size)) {
    std::byte* at =
        call.scratch + part * attention_gradient_bf16_scratch(call.queries, call.keys, call.size, call.value_size);
    const auto take = [&](auto*& place, int64_t bytes) {
      place = reinterpret_cast<std::remove_reference_t<decltype(place)>>(at);
      at += bytes;
    };
    take(queries_across, sizes.queries()), take(queries_down, sizes.queries());
    take(slopes_across, sizes.query_values()), take(slopes_down, sizes.query_values());
    take(key_rows, sizes.keys()), take(key_columns, sizes.keys()), take(value_rows, sizes.key_values());
    take(weights, sizes.block()), take(slopes, sizes.block()), take(slope_tiles, sizes.block());
    take(logarithms, sizes.logarithms()), take(means, sizes.logarithms());
    take(scores, sizes.scores()), take(products, sizes.scores());
    take(query_sums, sizes.query_sums()), take(key_sums, sizes.key_sums());
  }
};

// Operands of one head.
struct GradientOperands {
  StridedRows q, k, v, y, dy;
  const float* logarithms;
  const void* mask;
};

// [width][count] of rows [count][width], both in whole steps of 32.
void pack_columns(const StridedRows& x, uint16_t* to) {
  const int64_t stride = round_to_step(x.count);
  for (int64_t first = 0; first < stride; first += 16) {
    for (int64_t step = 0; step < round_to_step(x.width); step += 32) {
      Square rows, columns;
#pragma GCC unroll 16
      for (int n = 0; n < 16; ++n) {
        const bool exists = first + n < x.count;
        const uint16_t* from = x.data + (exists ? first + n : 0) * x.stride + step;
        rows.rows[n] = _mm512_maskz_loadu_epi16(exists ? first_items(x.width - step) : 0, from);
      }
      transpose(rows, columns);
#pragma GCC unroll 16
      for (int n = 0; n < 16; ++n) {
        uint16_t* at = to + (step + 2 * n) * stride + first;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), _mm512_cvtepi32_epi16(columns.rows[n]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + stride),
                            _mm512_cvtepi32_epi16(_mm512_srli_epi32(columns.rows[n], 16)));
      }
    }
  }
}

// What every block of keys reads. A query that saw no key has no weights: against +infinity they are zero.
void pack_head(const GradientOperands& from, const TiledGradient& head) {
  pack_across(from.q, head.queries_across), pack_down(from.q, head.queries_down);
  pack_across(from.dy, head.slopes_across), pack_down(from.dy, head.slopes_down);
  copy_rows(from.k, head.sizes.key_steps * 32, head.key_rows), pack_columns(from.k, head.key_columns);
  copy_rows(from.v, head.sizes.key_steps * 32, head.value_rows);
  for (int64_t query = 0; query < head.sizes.query_steps * 32; ++query) {
    head.logarithms[query] = __builtin_inff(), head.means[query] = 0;
    if (query >= from.q.count) continue;
    Floats products = zeros();
    for (int64_t d = 0; d < from.y.width; d += Floats::kWidth) {
      const int64_t left = from.y.width - d < Floats::kWidth ? from.y.width - d : Floats::kWidth;
      products = multiply_add(load_first(from.y.data + query * from.y.stride + d, left),
                              load_first(from.dy.data + query * from.dy.stride + d, left), products);
    }
    head.means[query] = sum_lanes(products);
    if (from.logarithms[query] != -__builtin_inff()) head.logarithms[query] = from.logarithms[query];
  }
}

// Scales a key's scores of 32 queries and adds the mask, whose rows lie apart.
void mask_queries(const AttentionGradientBf16Call& call, const void* mask, int64_t key, int64_t query, float* scores) {
  const int64_t left = call.queries - query < 32 ? call.queries - query : 32;
  for (int64_t n = 0; n < left; ++n) {
    const int64_t at = (query + n) * call.mask_strides.row + key;
    scores[n] *= call.scale;
    if (call.mask_kind == MaskKind::added) scores[n] += widen_bf16(static_cast<const uint16_t*>(mask)[at]);
    if (call.mask_kind == MaskKind::chosen && static_cast<const uint8_t*>(mask)[at] == 0) scores[n] = -__builtin_inff();
  }
}

struct WeighedKey {
  Floats weights[2], slopes[2];
};

// Of key `row` of the block, over 32 queries from `query` on.
LISSOME_INLINE WeighedKey weigh_key(const AttentionGradientBf16Call& call, const TiledGradient& head, int64_t row,
                                    int64_t key, int64_t query) {
  WeighedKey weighed;
  const float factor = call.mask_kind == MaskKind::none ? call.scale : 1;  // see mask_queries()
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const int64_t at = query + 16 * i;
    const Floats shift = load(head.logarithms + at);
    const Floats score = load(head.scores + row * 32 + 16 * i) * fill(factor) - shift;
    // Padding past the last key, and what causality hides, weighs nothing.
    int64_t hidden = key >= call.keys ? 16 : call.causal ? key - at : 0;
    hidden = hidden < 0 ? 0 : hidden > 16 ? 16 : hidden;
    const __mmask16 seen = static_cast<__mmask16>(0xffffu << hidden) &
                           _mm512_cmp_ps_mask(score.v, _mm512_set1_ps(-__builtin_inff()), _CMP_NEQ_UQ);
    weighed.weights[i] = {_mm512_maskz_mov_ps(seen, find_weight(score).v)};
    const Floats slope = load(head.products + row * 32 + 16 * i) - load(head.means + at);
    weighed.slopes[i] = {_mm512_maskz_mov_ps(seen, (weighed.weights[i] * slope * fill(call.scale)).v)};
  }
  return weighed;
}

LISSOME_INLINE __m512i narrow_both(const Floats (&x)[2]) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(x[1].v, x[0].v));
}

// Weights and gradients of scores, of a block of keys and 32 queries.
void weigh_queries(const AttentionGradientBf16Call& call, const GradientOperands& from, const TiledGradient& head,
                   int64_t key, int64_t query) {
  const int64_t stride = head.sizes.query_steps * 32, step = head.sizes.steps, value_step = head.sizes.value_steps;
  multiply_pairs({head.key_rows + key * step * 32, head.queries_across + query * step * 32, head.scores, step * 32,
                  step * kTile, kTile, 32, step, kGradientKeys, false});
  multiply_pairs({head.value_rows + key * value_step * 32, head.slopes_across + query * value_step * 32, head.products,
                  value_step * 32, value_step * kTile, kTile, 32, value_step, kGradientKeys, false});
  for (int64_t row = 0; row < kGradientKeys && call.mask_kind != MaskKind::none; ++row) {
    if (key + row < call.keys) mask_queries(call, from.mask, key + row, query, head.scores + row * 32);
  }
  uint16_t* tiles = head.slope_tiles + query / 32 * 2 * kTile;
  for (int64_t row = 0; row < kGradientKeys; row += 2) {
    const WeighedKey even = weigh_key(call, head, row, key + row, query);
    const WeighedKey odd = weigh_key(call, head, row + 1, key + row + 1, query);
    const __m512i slopes[2] = {narrow_both(even.slopes), narrow_both(odd.slopes)};
    _mm512_storeu_si512(head.weights + row * stride + query, narrow_both(even.weights));
    _mm512_storeu_si512(head.weights + (row + 1) * stride + query, narrow_both(odd.weights));
    _mm512_storeu_si512(head.slopes + row * stride + query, slopes[0]);
    _mm512_storeu_si512(head.slopes + (row + 1) * stride + query, slopes[1]);
    // Pairs down the keys, which dq multiplies.
    const auto widen = [](__m256i half) { return _mm512_cvtepu16_epi32(half); };
    const __m512i left = _mm512_or_si512(widen(_mm512_castsi512_si256(slopes[0])),
                                         _mm512_slli_epi32(widen(_mm512_castsi512_si256(slopes[1])), 16));
    const __m512i right = _mm512_or_si512(widen(_mm512_extracti64x4_epi64(slopes[0], 1)),
                                          _mm512_slli_epi32(widen(_mm512_extracti64x4_epi64(slopes[1], 1)), 16));
    _mm512_storeu_si512(tiles + row * 16, left);
    _mm512_storeu_si512(tiles + kTile + row * 16, right);
  }
}

// to[keys of the block][width] = rows of weights or slopes, from query step `first` on, times q or dy.
void store_key_gradient(const TiledGradient& head, const uint16_t* rows, const uint16_t* down, int64_t first,
                        const StridedRows& shape, int64_t key, uint16_t* to, int64_t to_stride) {
  const int64_t width = round_to_step(shape.width), stride = head.sizes.query_steps * 32;
  for (int64_t n = 0; n < width; n += 32) {
    multiply_pairs({rows + first * 32, down + (n / 32 * head.sizes.query_steps + first) * 2 * kTile, head.key_sums + n,
                    stride, kTile, 2 * kTile, width, head.sizes.query_steps - first, kGradientKeys, false});
  }
  const int64_t count = shape.count - key < kGradientKeys ? shape.count - key : kGradientKeys;
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t n = 0; n < shape.width; n += Floats::kWidth) {
      const int64_t left = shape.width - n < Floats::kWidth ? shape.width - n : Floats::kWidth;
      store_first(to + (key + r) * to_stride + n, load(head.key_sums + r * width + n), left);
    }
  }
}

// dq, from its columns.
void store_query_gradient(const TiledGradient& head, const StridedRows& shape, uint16_t* to, int64_t to_stride) {
  const int64_t stride = head.sizes.query_steps * 32;
  for (int64_t query = 0; query < shape.count; query += 16) {
    for (int64_t n = 0; n < shape.width; n += 16) {
      Square columns, rows;
#pragma GCC unroll 16
      for (int d = 0; d < 16; ++d) columns.rows[d] = _mm512_loadu_si512(head.query_sums + (n + d) * stride + query);
      transpose(columns, rows);
      const int64_t left = shape.width - n < 16 ? shape.width - n : 16;
      for (int r = 0; r < 16 && query + r < shape.count; ++r) {
        store_first(to + (query + r) * to_stride + n, {_mm512_castsi512_ps(rows.rows[r])}, left);
      }
    }
  }
}

void differentiate_head(const AttentionGradientBf16Call& call, const GradientOperands& from, const TiledGradient& head,
                        int64_t batch, int64_t at) {
  const auto find = [&](uint16_t* data, const HeadStrides& strides) {
    return data + batch * strides.batch + at * strides.head;
  };
  const int64_t stride = head.sizes.query_steps * 32;
  pack_head(from, head);
  __builtin_memset(head.query_sums, 0, static_cast<size_t>(head.sizes.query_sums()));
  for (int64_t key = 0; key < call.keys; key += kGradientKeys) {
    // Queries before the block see none of its keys.
    const int64_t first = !call.causal ? 0 : key / 32 < head.sizes.query_steps ? key / 32 : head.sizes.query_steps;
    for (int64_t query = first * 32; query < stride; query += 32) {
      weigh_queries(call, from, head, key, query);
      multiply_pairs({head.key_columns + key, head.slope_tiles + query / 32 * 2 * kTile, head.query_sums + query,
                      head.sizes.key_steps * 32, kTile, 2 * kTile, stride, 1, head.sizes.steps * 32, true});
    }
    store_key_gradient(head, head.weights, head.slopes_down, first, from.v, key, find(call.dv, call.dv_strides),
                       call.dv_strides.row);
    store_key_gradient(head, head.slopes, head.queries_down, first, from.k, key, find(call.dk, call.dk_strides),
                       call.dk_strides.row);
  }
  store_query_gradient(head, from.q, find(call.dq, call.dq_strides), call.dq_strides.row);
}

LISSOME_INLINE void run_attention_gradient_bf16(const AttentionGradientBf16Call& call, int part, int parts) {
  const TiledGradient head(call, part);
  const Range range = split_evenly(call.batch * call.heads, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / call.heads, h = i % call.heads;
    const auto find = [&](const uint16_t* data, const HeadStrides& strides, int64_t count, int64_t width) {
      return StridedRows{data + b * strides.batch + h * strides.head, strides.row, count, width};
    };
    const int64_t mask_at = b * call.mask_strides.batch + h * call.mask_strides.head;
    const GradientOperands from = {
        find(call.q, call.q_strides, call.queries, call.size),
        find(call.k, call.k_strides, call.keys, call.size),
        find(call.v, call.v_strides, call.keys, call.value_size),
        find(call.y, call.y_strides, call.queries, call.value_size),
        find(call.dy, call.dy_strides, call.queries, call.value_size),
        call.logarithms + i * call.queries,
        static_cast<const char*>(call.mask) + mask_at * (call.mask_kind == MaskKind::added ? 2 : 1)};
    differentiate_head(call, from, head, b, h);
  }
}

}  // namespace
}  // namespace lissome

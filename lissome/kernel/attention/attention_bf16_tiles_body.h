// bf16 attention in tiles of 16 rows and columns. Keys and values of a head are packed into tiles once; then blocks of
// 32 queries meet blocks of keys: scores in f32, weights rounded to bf16, sums of values in f32. What multiplies the
// tiles comes with attention_bf16_amx_body.h and attention_bf16_pairs_body.h.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/attention/attention_bf16.h"
#include "lissome/kernel/attention/attention_bf16_sizes.h"
#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

constexpr int64_t kTile = 512;  // bf16 elements: 16 rows of 16 pairs

struct TiledHead {
  const uint16_t *q, *k, *v;
  const void* mask;
  uint16_t* y;
  float* logarithms;  // of the head, or null
  uint16_t *key_tiles, *value_tiles, *queries, *weights;
  float *scores, *sums;
  TiledSizes sizes;
};

// What is known of a block of queries so far.
struct RunningRows {
  float largest[kTileQueries];
  float total[kTileQueries];
};

struct Square {
  __m512i rows[16];
};

// Rows become columns, by 32-bit words.
LISSOME_INLINE void transpose(const Square& from, Square& to) {
  Square pairs, fours;
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs.rows[i] = _mm512_unpacklo_epi32(from.rows[i], from.rows[i + 1]);
    pairs.rows[i + 1] = _mm512_unpackhi_epi32(from.rows[i], from.rows[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    fours.rows[i] = _mm512_unpacklo_epi64(pairs.rows[i], pairs.rows[i + 2]);
    fours.rows[i + 1] = _mm512_unpackhi_epi64(pairs.rows[i], pairs.rows[i + 2]);
    fours.rows[i + 2] = _mm512_unpacklo_epi64(pairs.rows[i + 1], pairs.rows[i + 3]);
    fours.rows[i + 3] = _mm512_unpackhi_epi64(pairs.rows[i + 1], pairs.rows[i + 3]);
  }
  // Now lane L of fours[4g + c] holds column 4L + c of rows 4g to 4g + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i upper_even = _mm512_shuffle_i32x4(fours.rows[c], fours.rows[4 + c], 0x88);
    const __m512i lower_even = _mm512_shuffle_i32x4(fours.rows[8 + c], fours.rows[12 + c], 0x88);
    const __m512i upper_odd = _mm512_shuffle_i32x4(fours.rows[c], fours.rows[4 + c], 0xdd);
    const __m512i lower_odd = _mm512_shuffle_i32x4(fours.rows[8 + c], fours.rows[12 + c], 0xdd);
    to.rows[c] = _mm512_shuffle_i32x4(upper_even, lower_even, 0x88);
    to.rows[8 + c] = _mm512_shuffle_i32x4(upper_even, lower_even, 0xdd);
    to.rows[4 + c] = _mm512_shuffle_i32x4(upper_odd, lower_odd, 0x88);
    to.rows[12 + c] = _mm512_shuffle_i32x4(upper_odd, lower_odd, 0xdd);
  }
}

LISSOME_INLINE __mmask32 first_items(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : count > 0 ? (__mmask32{1} << count) - 1 : 0;
}

// [count][width], `stride` elements from row to row. What is packed of it is filled with zeros to whole steps of 32.
struct StridedRows {
  const uint16_t* data;
  int64_t stride, count, width;
};

// Pairs along a row, row beside row: tile (16 rows, step of the width), the steps of the same rows behind each other.
void pack_across(const StridedRows& x, uint16_t* tiles) {
  const int64_t steps = round_to_step(x.width) / 32;
  for (int64_t first = 0; first < round_to_step(x.count); first += 16) {
    for (int64_t step = 0; step < steps; ++step, tiles += kTile) {
      const __mmask32 items = first_items(x.width - step * 32);
      Square rows, columns;
#pragma GCC unroll 16
      for (int n = 0; n < 16; ++n) {
        const bool exists = first + n < x.count;
        const uint16_t* from = x.data + (exists ? first + n : 0) * x.stride + step * 32;
        rows.rows[n] = _mm512_maskz_loadu_epi16(exists ? items : 0, from);
      }
      transpose(rows, columns);
#pragma GCC unroll 16
      for (int n = 0; n < 16; ++n) _mm512_storeu_si512(tiles + n * 32, columns.rows[n]);
    }
  }
}

// Pairs down the rows: for each 32 of the width, and each 32 rows, two tiles of 16 columns.
void pack_down(const StridedRows& x, uint16_t* tiles) {
  const auto load_part = [&](int64_t row, int64_t n) {
    if (row >= x.count) return _mm512_setzero_si512();
    const auto items = static_cast<__mmask16>(first_items(x.width - n));
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(items, x.data + row * x.stride + n));
  };
  const int64_t steps = round_to_step(x.count) / 32;
  for (int64_t n = 0; n < round_to_step(x.width); n += 16) {
    for (int64_t row = 0; row < steps * 32; row += 2) {
      const __m512i pairs = _mm512_or_si512(load_part(row, n), _mm512_slli_epi32(load_part(row + 1, n), 16));
      const int64_t tile = (n / 32 * steps + row / 32) * 2 + n / 16 % 2;
      _mm512_storeu_si512(tiles + tile * kTile + row % 32 * 16, pairs);
    }
  }
}

// Rows as they are, `count` of them, zeros from those of x on.
void copy_rows(const StridedRows& x, int64_t count, uint16_t* to) {
  const int64_t width = round_to_step(x.width);
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t k = 0; k < width; k += 32) {
      const __mmask32 items = r < x.count ? first_items(x.width - k) : 0;
      const uint16_t* from = x.data + (r < x.count ? r : 0) * x.stride + k;
      _mm512_storeu_si512(to + r * width + k, _mm512_maskz_loadu_epi16(items, from));
    }
  }
}

// y (+)= rows * tiles, 32 columns.
struct TileProduct {
  const uint16_t* rows;
  const uint16_t* tiles;  // of a step: left at 0, right at `right`; the next step `next` on
  float* y;
  int64_t row_stride, right, next, y_stride, steps;  // elements
  int64_t count;                                     // rows; of all kTileQueries there is room in x and y
  bool adds;
};

// 16 scores of a row from key `at` on: scaled, with the mask, -infinity where a key is not seen.
LISSOME_INLINE Floats mask_lanes(const AttentionBf16Call& call, const void* mask, Floats score, int64_t at,
                                 int64_t seen) {
  Floats value = score * fill(call.scale);
  const int64_t left = seen - at;
  auto lanes = static_cast<__mmask16>(first_items(left < 16 ? left : 16));
  if (call.mask_kind == MaskKind::added) {
    const __m256i bits = _mm256_maskz_loadu_epi16(lanes, static_cast<const uint16_t*>(mask) + at);
    value = value + widen_lanes(bits);
  } else if (call.mask_kind == MaskKind::chosen) {
    const __m128i chosen = _mm_maskz_loadu_epi8(lanes, static_cast<const uint8_t*>(mask) + at);
    lanes = _mm_test_epi8_mask(chosen, chosen);
  }
  return {_mm512_mask_blend_ps(lanes, _mm512_set1_ps(-__builtin_inff()), value.v)};
}

// e^x for x <= 0, to 1e-4 of it: less than rounding to bf16 takes away. NaN stays NaN.
LISSOME_INLINE Floats find_weight(Floats x) {
  x = max_with(fill(-104.0f), x);
  const Floats n = round_to_nearest(x * fill(1.44269504f));
  const Floats r = subtract_product(n, fill(0.693147181f), x);
  Floats p = multiply_add(fill(1.656684179e-01f), r, fill(5.049632639e-01f));
  p = multiply_add(p, r, fill(1.000164186e+00f));
  p = multiply_add(p, r, fill(9.999280736e-01f));
  return scale_by_power(p, n);
}

// Scales a row of scores and masks them; returns the largest.
LISSOME_INLINE float mask_row(const AttentionBf16Call& call, const void* mask, float* scores, int64_t keys,
                              int64_t seen) {
  Floats largest[2] = {fill(-__builtin_inff()), fill(-__builtin_inff())};
  int64_t n = 0;
  if (call.mask_kind != MaskKind::added) {
    for (; n + 32 <= seen; n += 32) {
      __mmask32 lanes = ~__mmask32{0};
      if (call.mask_kind == MaskKind::chosen) {
        const __m256i chosen =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const uint8_t*>(mask) + n));
        lanes = _mm256_test_epi8_mask(chosen, chosen);
      }
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const Floats scaled = load(scores + n + 16 * i) * fill(call.scale);
        const Floats value = {_mm512_mask_blend_ps(static_cast<__mmask16>(lanes >> (16 * i)),
                                                   _mm512_set1_ps(-__builtin_inff()), scaled.v)};
        store(scores + n + 16 * i, value);
        largest[i] = max_with(value, largest[i]);
      }
    }
  }
  for (; n < keys; n += Floats::kWidth) {
    const Floats value = mask_lanes(call, mask, load(scores + n), n, seen);
    store(scores + n, value);
    largest[0] = max_with(value, largest[0]);
  }
  return max_lanes(max_with(largest[0], largest[1]));
}

// Turns a masked row of scores into weights against the running maximum, and rescales what was summed before. `exact`:
// the logarithms of the sums are wanted, which are no bf16.
template <bool exact>
LISSOME_INLINE void weigh_row(const TiledHead& head, float largest, int64_t r, RunningRows& running, bool first_block) {
  const float* scores = head.scores + r * head.sizes.block;
  uint16_t* weights = head.weights + r * head.sizes.block;
  const float before = running.largest[r];
  const float top = largest > before ? largest : before;
  const Floats shift = fill(top == -__builtin_inff() ? 0 : top);  // nothing seen yet: weights of zero
  const auto weigh = [&](Floats score) { return exact ? exponential(score - shift) : find_weight(score - shift); };
  Floats totals[2] = {zeros(), zeros()};
  for (int64_t n = 0; n < head.sizes.block; n += 32) {
    const Floats left = weigh(load(scores + n)), right = weigh(load(scores + n + 16));
    _mm512_storeu_si512(weights + n, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right.v, left.v)));
    totals[0] = totals[0] + left, totals[1] = totals[1] + right;
  }
  const Floats total = totals[0] + totals[1];
  const float sum = sum_lanes(total);
  if (first_block) {
    running.total[r] = sum;
  } else if (top != before) {
    alignas(64) float factor[Floats::kWidth];
    store(factor, weigh(fill(before)));
    running.total[r] = running.total[r] * factor[0] + sum;
    float* sums = head.sums + r * head.sizes.value_panels * 32;
    for (int64_t n = 0; n < head.sizes.value_panels * 32; n += Floats::kWidth) {
      store(sums + n, load(sums + n) * fill(factor[0]));
    }
  } else {
    running.total[r] += sum;
  }
  running.largest[r] = top;
}

template <void (*Multiply)(const TileProduct&)>
void run_query_block(const AttentionBf16Call& call, const TiledHead& head, int64_t query, int64_t rows) {
  RunningRows running;
  for (int64_t r = 0; r < rows; ++r) running.largest[r] = -__builtin_inff(), running.total[r] = 0;
  const TiledSizes& sizes = head.sizes;
  copy_rows({head.q + query * call.q_strides.row, call.q_strides.row, rows, call.size}, kTileQueries, head.queries);
  const int64_t end = call.causal && query + rows < call.keys ? query + rows : call.keys;
  const int64_t item = call.mask_kind == MaskKind::added ? 2 : 1;
  for (int64_t key = 0; key < end; key += sizes.block) {
    const int64_t count = end - key < sizes.block ? end - key : sizes.block;
    for (int64_t n = 0; n < sizes.block; n += 32) {
      if (n >= count) break;
      Multiply({head.queries, head.key_tiles + (key + n) / 16 * sizes.steps * kTile, head.scores + n, sizes.steps * 32,
                sizes.steps * kTile, kTile, sizes.block, sizes.steps, rows, false});
    }
    // All maxima first: the search in one row need not wait for the weights of the row before.
    float largest[kTileQueries];
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t allowed = call.causal ? query + r + 1 - key : count;
      const int64_t mask_at = (query + r) * call.mask_strides.row + key;
      largest[r] = mask_row(call, static_cast<const char*>(head.mask) + mask_at * item, head.scores + r * sizes.block,
                            sizes.block, allowed < count ? allowed : count);
    }
    for (int64_t r = 0; r < rows; ++r)
      (head.logarithms ? weigh_row<true> : weigh_row<false>)(head, largest[r], r, running, key == 0);
    for (int64_t panel = 0; panel < sizes.value_panels; ++panel) {
      Multiply({head.weights, head.value_tiles + (panel * sizes.key_steps + key / 32) * 2 * kTile,
                head.sums + panel * 32, sizes.block, kTile, 2 * kTile, sizes.value_panels * 32, (count + 31) / 32, rows,
                key > 0});
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (head.logarithms) head.logarithms[query + r] = running.largest[r] + __builtin_logf(running.total[r]);
    const Floats factor = fill(running.total[r] == 0 ? 0.0f : 1 / running.total[r]);
    const float* sums = head.sums + r * sizes.value_panels * 32;
    uint16_t* y = head.y + (query + r) * call.y_strides.row;
    for (int64_t n = 0; n < call.value_size; n += Floats::kWidth) {
      const int64_t left = call.value_size - n < Floats::kWidth ? call.value_size - n : Floats::kWidth;
      store_first(y + n, load(sums + n) * factor, left);
    }
  }
}

// The head's places in the scratch of one part, in order.
TiledHead place_scratch(const AttentionBf16Call& call, int part) {
  TiledHead head = {};
  head.sizes = find_tiled_sizes(call.keys, call.size, call.value_size);
  std::byte* at = call.scratch + part * attention_bf16_scratch(call.keys, call.size, call.value_size);
  head.key_tiles = reinterpret_cast<uint16_t*>(at);
  head.value_tiles = reinterpret_cast<uint16_t*>(at += head.sizes.keys);
  head.queries = reinterpret_cast<uint16_t*>(at += head.sizes.values);
  head.scores = reinterpret_cast<float*>(at += head.sizes.queries);
  head.weights = reinterpret_cast<uint16_t*>(at += head.sizes.scores);
  head.sums = reinterpret_cast<float*>(at + head.sizes.weights);
  return head;
}

// `Multiply` does a product of tiles.
template <void (*Multiply)(const TileProduct&)>
LISSOME_INLINE void run_tiled_attention(const AttentionBf16Call& call, int part, int parts) {
  const int64_t blocks = (call.queries + kTileQueries - 1) / kTileQueries;
  const Range range = split_evenly(call.batch * call.heads * blocks, part, parts);
  TiledHead head = place_scratch(call, part);
  int64_t packed = -1;
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / blocks / call.heads, h = i / blocks % call.heads, query = i % blocks * kTileQueries;
    const int64_t key_head = h / (call.heads / call.key_heads);
    head.q = call.q + b * call.q_strides.batch + h * call.q_strides.head;
    head.k = call.k + b * call.k_strides.batch + key_head * call.k_strides.head;
    head.v = call.v + b * call.v_strides.batch + key_head * call.v_strides.head;
    head.y = call.y + b * call.y_strides.batch + h * call.y_strides.head;
    head.logarithms = call.logarithms ? call.logarithms + (b * call.heads + h) * call.queries : nullptr;
    const int64_t mask_at = b * call.mask_strides.batch + h * call.mask_strides.head;
    head.mask = static_cast<const char*>(call.mask) + mask_at * (call.mask_kind == MaskKind::added ? 2 : 1);
    if (packed != b * call.key_heads + key_head) {
      packed = b * call.key_heads + key_head;
      pack_across({head.k, call.k_strides.row, call.keys, call.size}, head.key_tiles);
      pack_down({head.v, call.v_strides.row, call.keys, call.value_size}, head.value_tiles);
    }
    run_query_block<Multiply>(call, head, query,
                              call.queries - query < kTileQueries ? call.queries - query : kTileQueries);
  }
}

}  // namespace
}  // namespace lissome

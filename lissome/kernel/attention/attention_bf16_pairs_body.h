// bf16 attention with AVX-512 BF16, which sums pairs of products: see attention_bf16_tiles_body.h.
#pragma once

#include "lissome/kernel/attention/attention_bf16_tiles_body.h"

namespace lissome {
namespace {

constexpr int kPairRows = 8;  // times two registers of sums; divides kTileQueries

void multiply_eight_rows(const TileProduct& p, const uint16_t* rows, float* y) {
  Floats sums[kPairRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kPairRows; ++r) {
    for (int i = 0; i < 2; ++i) sums[r][i] = p.adds ? load(y + r * p.y_stride + 16 * i) : zeros();
  }
  const uint16_t* tiles = p.tiles;
  for (int64_t step = 0; step < p.steps; ++step, rows += 32, tiles += p.next) {
    for (int pair = 0; pair < 16; ++pair) {
      const auto left = reinterpret_cast<__m512bh>(load_words(tiles + 32 * pair));
      const auto right = reinterpret_cast<__m512bh>(load_words(tiles + p.right + 32 * pair));
#pragma GCC unroll 8
      for (int r = 0; r < kPairRows; ++r) {
        int bits;
        __builtin_memcpy(&bits, rows + r * p.row_stride + 2 * pair, 4);
        const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
        sums[r][0] = {_mm512_dpbf16_ps(sums[r][0].v, value, left)};
        sums[r][1] = {_mm512_dpbf16_ps(sums[r][1].v, value, right)};
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kPairRows; ++r) {
    for (int i = 0; i < 2; ++i) store(y + r * p.y_stride + 16 * i, sums[r][i]);
  }
}

void multiply_pairs(const TileProduct& p) {
  for (int64_t r = 0; r < p.count; r += kPairRows) {
    multiply_eight_rows(p, p.rows + r * p.row_stride, p.y + r * p.y_stride);
  }
}

LISSOME_INLINE void run_attention_bf16(const AttentionBf16Call& call, int part, int parts) {
  run_tiled_attention<multiply_pairs>(call, part, parts);
}

}  // namespace
}  // namespace lissome

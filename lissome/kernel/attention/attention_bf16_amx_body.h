// bf16 attention on tile registers: see attention_bf16_tiles_body.h.
#pragma once

#include "lissome/kernel/isa/tiles_bf16.h"

#include "lissome/kernel/attention/attention_bf16_tiles_body.h"

namespace lissome {
namespace {

// The lower 16 rows only where they are needed.
void multiply_tile(const TileProduct& p) {
  const int64_t row_bytes = p.row_stride * 2, y_bytes = p.y_stride * 4;
  float* lower = p.y + 16 * p.y_stride;
  const bool both = p.count > 16;
  if (p.adds) {
    load_tile<0>(p.y, y_bytes), load_tile<1>(p.y + 16, y_bytes);
    if (both) load_tile<2>(lower, y_bytes), load_tile<3>(lower + 16, y_bytes);
  } else {
    clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  }
  const uint16_t *rows = p.rows, *tiles = p.tiles;
  for (int64_t step = 0; step < p.steps; ++step, rows += 32, tiles += p.next) {
    load_tile<4>(rows, row_bytes);
    load_tile<6>(tiles, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(tiles + p.right, 64);
    multiply_tiles<1, 4, 7>();
    if (!both) continue;
    load_tile<5>(rows + 16 * p.row_stride, row_bytes);
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
  store_tile<0>(p.y, y_bytes), store_tile<1>(p.y + 16, y_bytes);
  if (both) store_tile<2>(lower, y_bytes), store_tile<3>(lower + 16, y_bytes);
}

LISSOME_INLINE void run_attention_bf16(const AttentionBf16Call& call, int part, int parts) {
  shape_full_tiles();
  run_tiled_attention<multiply_tile>(call, part, parts);
  release_tiles();
}

}  // namespace
}  // namespace lissome

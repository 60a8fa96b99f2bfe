// The f32 linear kernel over Floats; see tile_f32_body.h.
#pragma once

#include "lissome/kernel/tile_f32_body.h"

namespace lissome {
namespace {

constexpr int64_t kChunkBytes = 512 * 1024;  // of x, per sweep over the panels

struct LinearTile {
  template <int Rows, int Vectors>
  static void run(const LinearF32Call& call, TilePlace place) {
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = call.x + (place.row + r) * call.x_stride;
    const float* weight =
        call.weight + place.output / kLinearPanel * kLinearPanel * call.inputs + place.output % kLinearPanel;
    Floats sums[Rows][Vectors];
    clear_sums(sums);
    accumulate(rows, weight, call.inputs, sums);
    store_tile(call, place, sums);
  }
};

LISSOME_INLINE void run_linear_f32(const LinearF32Call& call, int part, int parts) {
  const int64_t chunk = kChunkBytes / (call.inputs * static_cast<int64_t>(sizeof(float)) + 1);
  run_tiles<LinearTile>(call, call.rows, call.outputs, chunk, part, parts);
}

}  // namespace
}  // namespace lissome

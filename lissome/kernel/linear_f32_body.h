// The f32 linear kernel over Floats; see tile_f32_body.h.
#pragma once

#include "lissome/kernel/tile_f32_body.h"

namespace lissome {
namespace {

struct LinearTile {
  template <int Rows, int Vectors>
  static void run(const LinearF32Call& call, TilePlace place, Visit& visit) {
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = call.x + (place.row + r) * call.x_stride + visit.begin;
    const float* weight = call.weight + place.output / kLinearPanel * kLinearPanel * call.inputs +
                          visit.begin * kLinearPanel + place.output % kLinearPanel;
    Floats sums[Rows][Vectors];
    start_tile(visit, place, sums);
    if constexpr (Rows == 1) {
      if (visit.streams) {
        accumulate_streams(rows[0], weight, visit.end - visit.begin, sums);
        return finish_tile(call, visit, place, sums);
      }
    }
    accumulate(rows, weight, visit.end - visit.begin, sums, visit.ahead);
    finish_tile(call, visit, place, sums);
  }
};

LISSOME_INLINE void run_linear_f32(const LinearF32Call& call, int part, int parts) {
  const TileSizes sizes = {call.rows, call.outputs, call.inputs, call.inputs * static_cast<int64_t>(sizeof(float)),
                           call.streams && call.rows == 1};
  run_tiles<LinearTile>(call, sizes, call.weight, part, parts);
}

}  // namespace
}  // namespace lissome

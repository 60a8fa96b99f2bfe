// The f32 linear kernel over Floats; see tile_f32_body.h.
#pragma once

#include "lissome/kernel/isa/tile_f32_body.h"

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

constexpr int kPanelVectors = static_cast<int>(kLinearPanel / Floats::kWidth);

// Whether whole panels leave the parts about as even as columns of tiles do.
LISSOME_INLINE bool split_panels_evenly(int64_t outputs, int parts) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const int64_t columns = (outputs + kColumn - 1) / kColumn, panels = (outputs + kLinearPanel - 1) / kLinearPanel;
  const int64_t most_columns = (columns + parts - 1) / parts, most_panels = (panels + parts - 1) / parts;
  return 8 * most_panels * (kLinearPanel / kColumn) <= 9 * most_columns;
}

LISSOME_INLINE void run_linear_f32(const LinearF32Call& call, int part, int parts) {
  TileSizes sizes = {call.rows, call.outputs, call.inputs, call.inputs * static_cast<int64_t>(sizeof(float))};
  if (call.rows > 1 || !split_panels_evenly(call.outputs, parts))
    return run_tiles<LinearTile>(call, sizes, call.weight, part, parts);
  sizes.streams = call.streams;
  sizes.backwards = call.run != nullptr && *call.run % 2 != 0;
  run_tiles<LinearTile, kPanelVectors>(call, sizes, call.weight, part, parts);
}

}  // namespace
}  // namespace lissome

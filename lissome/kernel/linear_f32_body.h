// The f32 linear kernel over Floats; see tile_f32_body.h.
#pragma once

#include "lissome/kernel/tile_f32_body.h"

#include "lissome/kernel/matmul_places.h"

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
    accumulate(rows, weight, visit.end - visit.begin, sums, visit.ahead);
    finish_tile(call, visit, place, sums);
  }
};

LISSOME_INLINE void run_linear_f32(const LinearF32Call& call, int part, int parts) {
  const TileSizes sizes = {call.rows, call.outputs, call.inputs, call.inputs * static_cast<int64_t>(sizeof(float))};
  run_tiles<LinearTile>(call, sizes, call.weight, part, parts);
}

// b[k][n] as panel[k][n], the outputs that are missing filled with zeros.
LISSOME_INLINE void pack_panel(const MatmulF32Call& call, const MatmulPlace& place, float* panel) {
  for (int64_t k = 0; k < call.inner; ++k, panel += kLinearPanel) {
    const float* row = place.b + k * call.b_inner_stride;
    for (int64_t n = place.outputs; n < kLinearPanel; ++n) panel[n] = 0;
    if (call.b_output_stride == 1) {
      __builtin_memcpy(panel, row, static_cast<size_t>(place.outputs) * sizeof(float));
    } else {
      for (int64_t n = 0; n < place.outputs; ++n) panel[n] = row[n * call.b_output_stride];
    }
  }
}

LISSOME_INLINE void run_matmul_f32(const MatmulF32Call& call, int part, int parts) {
  float* panel = call.scratch + part * kLinearPanel * call.inner;
  for_each_matmul_panel(call, part, parts, [&](const MatmulPlace& place) {
    pack_panel(call, place, panel);
    LinearF32Call linear;
    linear.x = place.a, linear.weight = panel, linear.y = place.y;
    linear.rows = call.rows, linear.inputs = call.inner, linear.outputs = place.outputs;
    linear.x_stride = call.a_row_stride, linear.y_stride = call.outputs;
    run_linear_f32(linear, 0, 1);
  });
}

}  // namespace
}  // namespace lissome

// Which matrices, which outputs and which rows a part of a matmul computes. Static: see split.h.
#pragma once

#include "lissome/kernel/gemm/matmul_f32.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Rows times one panel of outputs of one matrix.
struct MatmulPlace {
  const float *a, *b;  // at the first row; at the first output
  OutputF32 output;    // at both
  int64_t rows, outputs;
  const float* start = nullptr;  // at both
};

// A part has whole panels, or some rows against all panels, whichever leaves the parts more even: each part lays out
// the panels that it reads.
struct MatmulShare {
  Range panels;  // of all matrices
  Range rows;
};
inline MatmulShare share_matmul(const MatmulF32Call& call, int64_t panels, int part, int parts) {
  constexpr int64_t kRowsTogether = 6;
  const int64_t tiles = (call.rows + kRowsTogether - 1) / kRowsTogether;
  const int64_t worst_panels = (panels + parts - 1) / parts * tiles;
  const int64_t worst_tiles = (tiles + parts - 1) / parts * panels;
  if (worst_panels <= worst_tiles) return {split_evenly(panels, part, parts), {0, call.rows}};
  return {{0, panels}, split_by_unit(call.rows, kRowsTogether, part, parts)};
}

// run(place) for each panel of outputs of each matrix of the part.
template <typename Run>
inline __attribute__((always_inline)) void for_each_matmul_panel(const MatmulF32Call& call, int part, int parts,
                                                                 const Run& run) {
  const int64_t panels = (call.outputs + kLinearPanel - 1) / kLinearPanel;
  int64_t batch = 1;
  for (int d = 0; d < call.batch_rank; ++d) batch *= call.batch_sizes[d];
  const MatmulShare share = share_matmul(call, batch * panels, part, parts);
  if (share.rows.begin == share.rows.end) return;
  for (int64_t at = share.panels.begin; at < share.panels.end; ++at) {
    const int64_t matrix = at / panels, first = at % panels * kLinearPanel;
    int64_t a_at = share.rows.begin * call.a_row_stride, b_at = first * call.b_output_stride, rest = matrix;
    for (int d = call.batch_rank - 1; d >= 0; --d) {
      a_at += rest % call.batch_sizes[d] * call.a_batch_strides[d];
      b_at += rest % call.batch_sizes[d] * call.b_batch_strides[d];
      rest /= call.batch_sizes[d];
    }
    OutputF32 output = call;
    const int64_t row = matrix * call.rows + share.rows.begin;
    output.y += row * call.y_stride + first;
    if (call.residual) output.residual += row * call.residual_stride + first;
    if (call.bias) output.bias += first;
    const int64_t left = call.outputs - first;
    const float* start = call.start ? call.start + row * call.y_stride + first : nullptr;
    run(MatmulPlace{call.a + a_at, call.b + b_at, output, share.rows.end - share.rows.begin,
                    left < kLinearPanel ? left : kLinearPanel, start});
  }
}

}  // namespace
}  // namespace lissome

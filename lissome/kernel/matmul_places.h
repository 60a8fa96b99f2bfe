// Which matrices and which outputs a part of a matmul computes. Static: see split.h.
#pragma once

#include "lissome/kernel/matmul_f32.h"
#include "lissome/kernel/split.h"

namespace lissome {
namespace {

struct MatmulPlace {
  const float *a, *b;  // of the matrices; b at the first output
  float* y;
  int64_t outputs;
};

// run(place) for each panel of outputs of each matrix of the part.
template <typename Run>
inline __attribute__((always_inline)) void for_each_matmul_panel(const MatmulF32Call& call, int part, int parts,
                                                                 const Run& run) {
  const int64_t panels = (call.outputs + kLinearPanel - 1) / kLinearPanel;
  int64_t batch = 1;
  for (int d = 0; d < call.batch_rank; ++d) batch *= call.batch_sizes[d];
  const Range mine = split_evenly(batch * panels, part, parts);
  for (int64_t at = mine.begin; at < mine.end; ++at) {
    const int64_t matrix = at / panels, output = at % panels * kLinearPanel;
    int64_t a_at = 0, b_at = output * call.b_output_stride, rest = matrix;
    for (int d = call.batch_rank - 1; d >= 0; --d) {
      a_at += rest % call.batch_sizes[d] * call.a_batch_strides[d];
      b_at += rest % call.batch_sizes[d] * call.b_batch_strides[d];
      rest /= call.batch_sizes[d];
    }
    const int64_t left = call.outputs - output;
    run(MatmulPlace{call.a + a_at, call.b + b_at, call.y + matrix * call.rows * call.outputs + output,
                    left < kLinearPanel ? left : kLinearPanel});
  }
}

}  // namespace
}  // namespace lissome

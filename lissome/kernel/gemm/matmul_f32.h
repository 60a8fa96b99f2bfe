// Products of two computed matrices, many at once.
#pragma once

#include "lissome/kernel/gemm/linear_f32.h"

namespace lissome {

inline constexpr int kMatmulBatchRank = 4;

// y[i] = act(a[i] * b[i] + bias) for each matrix i of a batch, finished as linear_f32 finishes. a and b may lie in any
// order. Batch dimensions of a and b have strides of their own, zero where one is broadcast; y and the residual are
// dense.
struct MatmulF32Call : OutputF32 {  // y: [batch..., rows, outputs]
  const float* a = nullptr;
  const float* b = nullptr;
  const float* start = nullptr;  // as y, may be y itself, or null: what sums go on from, in the order of one long sum
  float* scratch = nullptr;      // matmul_f32_scratch(inner) floats for each part
  int64_t rows = 0, inner = 0, outputs = 0;
  int64_t batch_sizes[kMatmulBatchRank] = {};  // `batch_rank` of them, outermost first
  int64_t a_batch_strides[kMatmulBatchRank] = {}, b_batch_strides[kMatmulBatchRank] = {};
  int64_t a_row_stride = 0, a_inner_stride = 1, b_inner_stride = 0, b_output_stride = 0;
  int batch_rank = 0;
};

// A panel of b in the order that linear_f32 reads.
int64_t matmul_f32_scratch(int64_t inner);

}  // namespace lissome

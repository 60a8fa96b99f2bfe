// Products of two computed matrices, many at once, in bf16.
#pragma once

#include <cstddef>

#include "lissome/base.h"
#include "lissome/kernel/gemm/linear_f32.h"
#include "lissome/kernel/gemm/matmul_f32.h"

namespace lissome {

// y[i] = act(a[i] * b[i] + bias) for each matrix i of a batch, a residual added before or after the activation. a, b
// and the bias are bf16, or f32 that is rounded to bf16 as it is read; sums and all that follows are f32. a and b may
// lie in any order. Batch dimensions of a and b have strides of their own, zero where one is broadcast; y and the
// residual are dense.
struct MatmulBf16Call {
  const void *a = nullptr, *b = nullptr;
  const void* bias = nullptr;      // [outputs], or null
  const void* residual = nullptr;  // [batch..., rows, outputs]; may be y itself
  void* y = nullptr;
  std::byte* scratch = nullptr;  // matmul_bf16_scratch() bytes for each part, aligned to 64
  int64_t rows = 0, inner = 0, outputs = 0;
  int64_t batch_sizes[kMatmulBatchRank] = {};  // `batch_rank` of them, outermost first
  int64_t a_batch_strides[kMatmulBatchRank] = {}, b_batch_strides[kMatmulBatchRank] = {};
  int64_t a_row_stride = 0, a_inner_stride = 1, b_inner_stride = 0, b_output_stride = 0;  // in elements
  int batch_rank = 0;
  Dtype a_dtype = Dtype::bf16, b_dtype = Dtype::bf16, bias_dtype = Dtype::bf16;
  Dtype y_dtype = Dtype::bf16;  // and that of the residual
  Epilogue epilogue;
  ResidualPlace residual_place = ResidualPlace::none;
};

// Depends on the sizes, the dtype of y and the place of the residual.
int64_t matmul_bf16_scratch(const MatmulBf16Call& call);

}  // namespace lissome

// The portable form: sums in double.
#include "lissome/kernel/gemm/matmul_bf16.h"

#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/matmul_bf16_sizes.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {

int64_t matmul_bf16_scratch(const MatmulBf16Call& call) { return measure_matmul_bf16_scratch(call).total() * 4; }

namespace {

double read_rounded(Dtype dtype, const void* data, int64_t at) {
  return widen_bf16(narrow_bf16(read_element(dtype, data, at)));
}

double sum_products(const MatmulBf16Call& call, MatmulBf16Offsets at) {
  double sum = 0;
  for (int64_t k = 0; k < call.inner; ++k, at.a += call.a_inner_stride, at.b += call.b_inner_stride) {
    sum += read_rounded(call.a_dtype, call.a, at.a) * read_rounded(call.b_dtype, call.b, at.b);
  }
  return sum;
}

void finish_sum(const MatmulBf16Call& call, int64_t row, int64_t output, double sum) {
  const int64_t at = row * call.outputs + output;
  if (call.bias) sum += read_rounded(call.bias_dtype, call.bias, output);
  if (call.residual_place == ResidualPlace::before_activation) sum += read_element(call.y_dtype, call.residual, at);
  sum = activate(call.epilogue, sum);
  if (call.residual_place == ResidualPlace::after_activation) sum += read_element(call.y_dtype, call.residual, at);
  write_element(call.y_dtype, call.y, at, static_cast<float>(sum));
}

}  // namespace

void matmul_bf16_portable(const MatmulBf16Call& call, int part, int parts) {
  const Range rows = split_evenly(count_matrices(call) * call.rows, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const MatmulBf16Offsets matrix = find_matrix(call, row / call.rows);
    const int64_t a = matrix.a + row % call.rows * call.a_row_stride;
    for (int64_t n = 0; n < call.outputs; ++n) {
      finish_sum(call, row, n, sum_products(call, {a, matrix.b + n * call.b_output_stride}));
    }
  }
}

}  // namespace lissome

// Every row of "matmul_bf16" against the portable form, over shapes, orders and dtypes of a and b.
#include "lissome/kernel/gemm/matmul_bf16.h"

#include <doctest/doctest.h>

#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

// Numbers in either dtype.
struct Numbers {
  std::vector<float> wide;
  std::vector<uint16_t> narrow;
  Dtype dtype = Dtype::f32;

  Numbers(TestNumbers& numbers, int64_t count, float scale = 1) : wide(numbers.reals(count)) {
    for (float& value : wide) value *= scale;
    for (const float value : wide) narrow.push_back(narrow_bf16(value));
    if (numbers.between(0, 1) == 1) dtype = Dtype::bf16;
  }
  const void* data() const { return dtype == Dtype::f32 ? static_cast<const void*>(wide.data()) : narrow.data(); }
};

// y as floats, whatever it is.
std::vector<float> run_row(const KernelRow& row, MatmulBf16Call call, int64_t count, int parts) {
  std::vector<float> wide(static_cast<size_t>(count), 777.0f);
  std::vector<uint16_t> narrow(static_cast<size_t>(count), 0x4444);
  call.y = call.y_dtype == Dtype::f32 ? static_cast<void*>(wide.data()) : narrow.data();
  AlignedBytes scratch(parts * matmul_bf16_scratch(call));
  call.scratch = scratch.data();
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
  if (call.y_dtype == Dtype::f32) return wide;
  std::vector<float> values;
  for (const uint16_t value : narrow) values.push_back(widen_bf16(value));
  return values;
}

// `call` has all but y and scratch.
void check_rows(const MatmulBf16Call& call, int64_t count) {
  MatmulBf16Call exact = call;
  std::vector<float> residual;
  exact.y_dtype = Dtype::f32;
  if (call.residual && call.y_dtype == Dtype::bf16) {
    for (int64_t i = 0; i < count; ++i) residual.push_back(read_element(Dtype::bf16, call.residual, i));
    exact.residual = residual.data();
  }
  const auto wanted = run_row(kernel_rows("matmul_bf16").back(), exact, count, 1);
  for (const KernelRow& row : kernel_rows("matmul_bf16")) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 2, 5}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      const auto seen = run_row(row, call, count, parts);
      int64_t wrong = 0;
      for (size_t i = 0; i < seen.size(); ++i) {
        const bool agrees = call.y_dtype == Dtype::f32 ? close_enough(seen[i], wanted[i], 2e-5f)
                                                       : is_rounded(narrow_bf16(seen[i]), wanted[i], 2e-5f);
        wrong += !agrees;
      }
      CHECK(wrong == 0);
    }
  }
}

void set_strides(MatmulBf16Call& call, MatrixStrides a, MatrixStrides b) {
  call.a_row_stride = a.row, call.a_inner_stride = a.column;
  call.b_inner_stride = b.row, call.b_output_stride = b.column;
}

void set_operands(MatmulBf16Call& call, const Numbers& a, const Numbers& b) {
  call.a = a.data(), call.a_dtype = a.dtype;
  call.b = b.data(), call.b_dtype = b.dtype;
}

// Sums of about one, however long, so that the tolerance means the same for all.
float scale_of(const MatmulBf16Call& call) { return 3 / std::sqrt(static_cast<float>(call.inner)); }

}  // namespace

TEST_CASE("matmul_bf16 agrees with the portable form, whatever the order and dtype of a and b and what is broadcast") {
  TestNumbers numbers(61);
  for (int i = 0; i < 120; ++i) {
    CAPTURE(i);
    MatmulBf16Call call;
    call.rows = numbers.between(1, 40), call.inner = numbers.between(1, 90), call.outputs = numbers.between(1, 150);
    call.batch_rank = 2;
    call.batch_sizes[0] = numbers.between(1, 3), call.batch_sizes[1] = numbers.between(1, 3);
    set_strides(call, choose_strides(i % 3, call.rows, call.inner),
                choose_strides(i / 3 % 3, call.inner, call.outputs));
    const int64_t a_size = 2 * call.rows * call.inner, b_size = 2 * call.inner * call.outputs;
    call.a_batch_strides[0] = call.batch_sizes[1] * a_size, call.a_batch_strides[1] = i % 4 == 0 ? 0 : a_size;
    call.b_batch_strides[0] = i % 5 == 0 ? 0 : call.batch_sizes[1] * b_size, call.b_batch_strides[1] = b_size;
    const int64_t matrices = call.batch_sizes[0] * call.batch_sizes[1];
    const Numbers a(numbers, matrices * a_size, scale_of(call)), b(numbers, matrices * b_size);
    set_operands(call, a, b);
    if (i % 2 == 0) call.y_dtype = Dtype::f32;
    check_rows(call, matrices * call.rows * call.outputs);
  }
}

TEST_CASE("matmul_bf16 sums in blocks, splits rows or outputs, adds a bias and a residual, and activates") {
  TestNumbers numbers(62);
  for (int i = 0; i < 36; ++i) {
    CAPTURE(i);
    MatmulBf16Call call;
    call.rows = numbers.between(1, 300), call.inner = numbers.between(900, 3000);
    call.outputs = numbers.between(1, 200);
    if (i % 6 == 0) call.rows = 2000, call.inner = 70, call.outputs = 64;
    if (i % 6 == 1) call.rows = 7, call.inner = 130, call.outputs = 3000;
    set_strides(call, choose_strides(i % 3, call.rows, call.inner),
                choose_strides(i / 3 % 3, call.inner, call.outputs));
    const int64_t results = call.rows * call.outputs;
    const Numbers a(numbers, 2 * call.rows * call.inner, scale_of(call)), b(numbers, 2 * call.inner * call.outputs);
    const Numbers bias(numbers, call.outputs), residual(numbers, results);
    set_operands(call, a, b);
    call.y_dtype = residual.dtype;
    if (i % 3 != 0) call.bias = bias.data(), call.bias_dtype = bias.dtype;
    if (i % 4 == 1) call.residual = residual.data(), call.residual_place = ResidualPlace::before_activation;
    if (i % 4 == 2) call.residual = residual.data(), call.residual_place = ResidualPlace::after_activation;
    if (i % 5 == 1) call.epilogue.activation = Activation::relu;
    if (i % 5 == 2) call.epilogue.activation = Activation::gelu;
    check_rows(call, results);
  }
}

TEST_CASE("matmul_bf16 keeps NaN and infinities where they are, whatever lies beside the operands") {
  for (const int64_t inner : {1, 3, 32, 45}) {
    for (const bool is_turned : {false, true}) {
      MatmulBf16Call call;
      call.rows = 18, call.inner = inner, call.outputs = 37;
      // Every other row of a is NaN and no part of the product; so is what follows the last.
      std::vector<uint16_t> a(static_cast<size_t>(40 * inner + 64), 0x7fc0),
          b(static_cast<size_t>(inner * 37 + 64), 0x7fc0);
      TestNumbers numbers(63);
      const auto at = [&](int64_t m, int64_t k) {
        return static_cast<size_t>(is_turned ? k * 40 + m : m * 2 * inner + k);
      };
      for (int64_t m = 0; m < call.rows; ++m) {
        for (int64_t k = 0; k < inner; ++k) a[at(m, k)] = narrow_bf16(numbers.real());
      }
      for (int64_t i = 0; i < inner * 37; ++i) b[static_cast<size_t>(i)] = narrow_bf16(numbers.real());
      a[at(2, inner - 1)] = 0x7fc0;
      a[at(4, 0)] = 0x7f80;
      b[5] = 0xff80;
      call.a = a.data(), call.b = b.data();
      set_strides(call, is_turned ? MatrixStrides{1, 40} : MatrixStrides{2 * inner, 1}, {37, 1});
      check_rows(call, call.rows * call.outputs);
    }
  }
}

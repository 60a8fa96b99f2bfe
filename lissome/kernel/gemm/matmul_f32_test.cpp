#include "lissome/kernel/gemm/matmul_f32.h"

#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

namespace {

void check_matmul(MatmulF32Call call, TestNumbers& numbers, int64_t a_size, int64_t b_size, int64_t results) {
  auto a = numbers.reals(a_size);
  const auto b = numbers.reals(b_size);
  // Sums of about one, however long, so that the tolerance means the same for all.
  for (float& value : a) value *= 3 / std::sqrt(static_cast<float>(call.inner));
  call.a = a.data(), call.b = b.data();
  call.y_stride = call.residual_stride = call.outputs;
  std::vector<float> scratch(static_cast<size_t>(5 * matmul_f32_scratch(call.inner)));
  call.scratch = scratch.data();
  check_rows("matmul_f32", call, results, 2e-5f, [](MatmulF32Call& filled, float* y) { filled.y = y; });
}

}  // namespace

TEST_CASE("matmul_f32 agrees with the portable form, whatever the order of a and b and what is broadcast") {
  TestNumbers numbers(51);
  for (int i = 0; i < 90; ++i) {
    MatmulF32Call call;
    call.rows = numbers.between(1, 20), call.inner = numbers.between(1, 90), call.outputs = numbers.between(1, 150);
    call.batch_rank = 2;
    call.batch_sizes[0] = numbers.between(1, 3), call.batch_sizes[1] = numbers.between(1, 3);
    const MatrixStrides a = choose_strides(i % 3, call.rows, call.inner);
    const MatrixStrides b = choose_strides(i / 3 % 3, call.inner, call.outputs);
    call.a_row_stride = a.row, call.a_inner_stride = a.column;
    call.b_inner_stride = b.row, call.b_output_stride = b.column;
    const int64_t a_size = 2 * call.rows * call.inner, b_size = 2 * call.inner * call.outputs;
    call.a_batch_strides[0] = call.batch_sizes[1] * a_size, call.a_batch_strides[1] = i % 4 == 0 ? 0 : a_size;
    call.b_batch_strides[0] = i % 5 == 0 ? 0 : call.batch_sizes[1] * b_size, call.b_batch_strides[1] = b_size;
    const int64_t matrices = call.batch_sizes[0] * call.batch_sizes[1];
    check_matmul(call, numbers, matrices * a_size, matrices * b_size, matrices * call.rows * call.outputs);
  }
}

TEST_CASE("matmul_f32 sums in blocks, splits rows or outputs, and finishes as linear_f32 does") {
  TestNumbers numbers(52);
  for (int i = 0; i < 24; ++i) {
    MatmulF32Call call;
    call.rows = numbers.between(1, 300), call.inner = numbers.between(500, 1700),
    call.outputs = numbers.between(1, 200);
    const MatrixStrides a = choose_strides(i % 2, call.rows, call.inner),
                        b = choose_strides(i / 2 % 2, call.inner, call.outputs);
    call.a_row_stride = a.row, call.a_inner_stride = a.column;
    call.b_inner_stride = b.row, call.b_output_stride = b.column;
    const auto bias = numbers.reals(call.outputs), residual = numbers.reals(call.rows * call.outputs);
    if (i % 3 != 0) call.bias = bias.data();
    if (i % 4 == 1) call.residual = residual.data(), call.residual_place = ResidualPlace::before_activation;
    if (i % 4 == 2) call.residual = residual.data(), call.residual_place = ResidualPlace::after_activation;
    if (i % 5 == 1) call.epilogue.activation = Activation::relu;
    if (i % 5 == 2) call.epilogue.activation = Activation::gelu;
    check_matmul(call, numbers, call.rows * call.inner, call.inner * call.outputs, call.rows * call.outputs);
  }
}

TEST_CASE("a product that goes on from the sums of an earlier one has the bits of one long product") {
  TestNumbers numbers(53);
  for (int i = 0; i < 16; ++i) {
    MatmulF32Call call;
    call.rows = numbers.between(40, 300), call.inner = numbers.between(300, 900),
    call.outputs = numbers.between(1, 150);
    call.y_stride = call.outputs;
    const auto a = numbers.reals(call.rows * call.inner), b = numbers.reals(call.inner * call.outputs);
    const MatrixStrides order = choose_strides(i % 2, call.rows, call.inner);
    call.a = a.data(), call.a_row_stride = order.row, call.a_inner_stride = order.column;
    call.b = b.data(), call.b_inner_stride = call.outputs, call.b_output_stride = 1;
    std::vector<float> scratch(static_cast<size_t>(3 * matmul_f32_scratch(call.inner)));
    call.scratch = scratch.data();
    MatmulF32Call first = call, rest = call;
    first.inner = numbers.between(1, call.inner - 1), rest.inner = call.inner - first.inner;
    rest.a += first.inner * call.a_inner_stride, rest.b += first.inner * call.b_inner_stride;
    std::vector<float> whole(static_cast<size_t>(call.rows * call.outputs)), parts = whole;
    call.y = whole.data(), first.y = rest.y = parts.data(), rest.start = parts.data();
    for (const KernelRow& row : kernel_rows("matmul_f32")) {
      // The portable form sums in double, and rounds each part.
      if (!can_run(row.isa) || row.isa == Isa::portable) continue;
      CAPTURE(isa_name(row.isa));
      for (const MatmulF32Call* each : {&call, &first, &rest}) {
        for (int part = 0; part < 3; ++part) row.function(each, part, 3);
      }
      CHECK(whole == parts);
    }
  }
}

TEST_CASE("sums that go on agree with the portable form") {
  TestNumbers numbers(54);
  for (int i = 0; i < 12; ++i) {
    MatmulF32Call call;
    call.rows = numbers.between(1, 20), call.inner = numbers.between(1, 90), call.outputs = numbers.between(1, 150);
    const MatrixStrides a = choose_strides(i % 2, call.rows, call.inner),
                        b = choose_strides(0, call.inner, call.outputs);
    call.a_row_stride = a.row, call.a_inner_stride = a.column;
    call.b_inner_stride = b.row, call.b_output_stride = b.column;
    const auto start = numbers.reals(call.rows * call.outputs);
    call.start = start.data();
    check_matmul(call, numbers, call.rows * call.inner, call.inner * call.outputs, call.rows * call.outputs);
  }
}

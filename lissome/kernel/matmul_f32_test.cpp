#include "lissome/kernel/matmul_f32.h"

#include "lissome/kernel/row_check.h"

using namespace lissome;

TEST_CASE("matmul_f32 agrees with the portable form, whatever the order of b and what is broadcast") {
  TestNumbers numbers(51);
  for (int i = 0; i < 80; ++i) {
    MatmulF32Call call;
    call.rows = numbers.between(1, 20), call.inner = numbers.between(1, 90), call.outputs = numbers.between(1, 150);
    call.batch_rank = 2;
    call.batch_sizes[0] = numbers.between(1, 3), call.batch_sizes[1] = numbers.between(1, 3);
    const int64_t a_size = call.rows * call.inner, b_size = call.inner * call.outputs;
    call.a_row_stride = call.inner;
    const bool transposed = i % 2 == 0;
    call.b_inner_stride = transposed ? 1 : call.outputs, call.b_output_stride = transposed ? call.inner : 1;
    call.a_batch_strides[0] = call.batch_sizes[1] * a_size, call.a_batch_strides[1] = i % 3 == 0 ? 0 : a_size;
    call.b_batch_strides[0] = i % 4 == 0 ? 0 : call.batch_sizes[1] * b_size, call.b_batch_strides[1] = b_size;
    const int64_t matrices = call.batch_sizes[0] * call.batch_sizes[1];
    const auto a = numbers.reals(matrices * a_size), b = numbers.reals(matrices * b_size);
    call.a = a.data(), call.b = b.data();
    std::vector<float> scratch(static_cast<size_t>(5 * matmul_f32_scratch(call.inner)));
    call.scratch = scratch.data();
    check_rows("matmul_f32", call, matrices * call.rows * call.outputs, 2e-5f,
               [](MatmulF32Call& filled, float* y) { filled.y = y; });
  }
}

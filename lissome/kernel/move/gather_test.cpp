#include "lissome/kernel/move/gather.h"

#include "lissome/kernel/gemm/row_check.h"

using namespace lissome;

namespace {

void run_in_parts(const GatherCall& call, int parts) {
  for (int part = 0; part < parts; ++part) find_kernel("gather").function(&call, part, parts);
}

}  // namespace

TEST_CASE("gather indexes by two tensors that broadcast, with whole rows behind them") {
  TestNumbers numbers(5);
  // x[a, b, 7] at [rows[3, 1], columns[4]] -> y[3, 4, 7]
  const int64_t a = 5, b = 6;
  const auto x = numbers.reals(a * b * 7);
  const std::vector<int64_t> rows = {4, -5, 2};
  const std::vector<int32_t> columns = {0, 5, -1, 3};
  GatherCall call;
  call.rank = 3, call.count = 2, call.negative_allowed = true;
  const int64_t sizes[3] = {3, 4, 7};
  std::copy(sizes, sizes + 3, call.sizes);
  call.x_strides[2] = 1;
  call.index_strides[0][0] = 1, call.index_strides[1][1] = 1;
  call.steps[0] = b * 7, call.steps[1] = 7, call.limits[0] = a, call.limits[1] = b;
  call.narrow[1] = true;
  int64_t fault = 0;
  call.x = x.data(), call.indices[0] = rows.data(), call.indices[1] = columns.data(), call.fault = &fault;
  call.fault_code = 3;
  for (const int parts : {1, 2, 5}) {
    std::vector<float> y(3 * 4 * 7, 777.0f);
    call.y = y.data();
    run_in_parts(call, parts);
    bool same = true;
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t row = (rows[static_cast<size_t>(i)] + a) % a, column = (columns[static_cast<size_t>(j)] + b) % b;
        for (int64_t k = 0; k < 7; ++k) {
          same =
              same && y[static_cast<size_t>((i * 4 + j) * 7 + k)] == x[static_cast<size_t>((row * b + column) * 7 + k)];
        }
      }
    }
    CHECK(same);
    CHECK(fault == 0);
  }
}

TEST_CASE("gather alongs along a dimension and reports indices out of range") {
  // y[i, j] = x[index[i, j], j]
  const std::vector<uint8_t> x = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> index = {1, 0, 1, 0, 1, 0};
  std::vector<uint8_t> y(6);
  int64_t fault = 0;
  GatherCall call;
  call.rank = 2, call.count = 1, call.item = 1;
  call.sizes[0] = 2, call.sizes[1] = 3;
  call.x_strides[1] = 1;
  call.index_strides[0][0] = 3, call.index_strides[0][1] = 1;
  call.steps[0] = 3, call.limits[0] = 2;
  call.x = x.data(), call.y = y.data(), call.indices[0] = index.data(), call.fault = &fault, call.fault_code = 9;
  run_in_parts(call, 2);
  CHECK(y == std::vector<uint8_t>{4, 2, 6, 1, 5, 3});
  CHECK(fault == 0);
  index[2] = -1;
  run_in_parts(call, 1);
  CHECK(fault == 9);
  fault = 0;
  call.negative_allowed = true;
  run_in_parts(call, 1);
  CHECK(fault == 0);
  CHECK(y[2] == 6);
  index[5] = 2;
  run_in_parts(call, 1);
  CHECK(fault == 9);
}

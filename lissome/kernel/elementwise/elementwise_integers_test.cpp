#include <doctest/doctest.h>

#include <vector>

#include "lissome/kernel/elementwise/elementwise.h"
#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

using namespace lissome;

namespace {

// One element, written apart from the kernel.
int64_t compute(ElementOp op, int64_t a, int64_t b, int64_t c, int64_t at) {
  const auto wide = [](auto value) { return static_cast<int64_t>(static_cast<uint64_t>(value)); };
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case ElementOp::constant: return 7;
    case ElementOp::position: return 7 - 3 * at;
    case ElementOp::negate: return wide(-x);
    case ElementOp::absolute: return a < 0 ? wide(-x) : a;
    case ElementOp::square: return wide(x * x);
    case ElementOp::logical_not: return a == 0;
    case ElementOp::add: return wide(x + y);
    case ElementOp::subtract: return wide(x - y);
    case ElementOp::multiply: return wide(x * y);
    case ElementOp::maximum: return std::max(a, b);
    case ElementOp::minimum: return std::min(a, b);
    case ElementOp::equal: return a == b;
    case ElementOp::unequal: return a != b;
    case ElementOp::less: return a < b;
    case ElementOp::less_equal: return a <= b;
    case ElementOp::logical_and: return a != 0 && b != 0;
    case ElementOp::logical_or: return a != 0 || b != 0;
    default: return a != 0 ? b : c;
  }
}

}  // namespace

TEST_CASE("element-wise chains on integers are exact and wrap around") {
  for (const int64_t count : {1, 17, 256, 600}) {
    TestNumbers numbers(static_cast<uint64_t>(count));
    std::vector<int64_t> a(static_cast<size_t>(count)), b = a, y = a;
    std::vector<uint8_t> c(a.size()), bytes(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      // Around every power of two, the ends of the range among them.
      const uint64_t power = uint64_t{1} << numbers.between(0, 63);
      a[i] = numbers.between(0, 2) == 0
                 ? 0
                 : static_cast<int64_t>(power + static_cast<uint64_t>(numbers.between(0, 3)) - 1);
      b[i] = numbers.between(0, 2) == 0 ? a[i] : numbers.between(0, 20) - 10;
      c[i] = static_cast<uint8_t>(numbers.between(0, 255));
    }
    ElementwiseCall call;
    call.sizes[0] = count, call.operands = 3, call.instructions = 4;
    call.x[0] = a.data(), call.x[1] = b.data(), call.x[2] = c.data();
    call.x_dtypes[0] = call.x_dtypes[1] = Dtype::i64, call.x_dtypes[2] = Dtype::u8;
    for (uint8_t i = 0; i < 3; ++i) call.strides[i][0] = 1, call.program[i] = {ElementOp::load, i, i, 0, 0, 0, 0};
    for (int op = static_cast<int>(ElementOp::constant); op <= static_cast<int>(ElementOp::select); ++op) {
      const auto operation = static_cast<ElementOp>(op);
      if (!is_integer_operation(operation)) continue;
      call.program[3] = {operation, 4, 0, 1, 2, 7, -3};
      for (const KernelRow& row : kernel_rows("elementwise_integers")) {
        if (!can_run(row.isa)) continue;
        for (const int parts : {1, 3}) {
          CAPTURE(isa_name(row.isa));
          CAPTURE(op);
          bool same = true;
          call.y = y.data(), call.y_dtype = Dtype::i64;
          for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
          call.y = bytes.data(), call.y_dtype = Dtype::u8;
          for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
          for (size_t i = 0; i < y.size(); ++i) {
            const int64_t wanted = compute(operation, a[i], b[i], c[i], static_cast<int64_t>(i));
            same = same && y[i] == wanted && bytes[i] == static_cast<uint8_t>(wanted);
          }
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("element-wise chains on integers broadcast and write flags") {
  const std::vector<int64_t> rows = {int64_t{1} << 40, (int64_t{1} << 40) + 1};
  const std::vector<int32_t> columns = {5, -5, 0};
  std::vector<uint8_t> y(6, 9);
  ElementwiseCall call;
  call.rank = 2, call.sizes[0] = 2, call.sizes[1] = 3;
  call.operands = 2, call.instructions = 4;
  call.x[0] = rows.data(), call.x[1] = columns.data(), call.y = y.data();
  call.x_dtypes[0] = Dtype::i64, call.x_dtypes[1] = Dtype::i32, call.y_dtype = Dtype::boolean;
  call.strides[0][0] = 1, call.strides[1][1] = 1;
  call.program[0] = {ElementOp::load, 0, 0, 0, 0, 0, 0};
  call.program[1] = {ElementOp::load, 1, 1, 0, 0, 0, 0};
  call.program[2] = {ElementOp::add, 2, 0, 1, 0, 0, 0};
  call.program[3] = {ElementOp::less, 3, 0, 2, 0, 0, 0};
  for (const KernelRow& row : kernel_rows("elementwise_integers")) {
    if (!can_run(row.isa)) continue;
    row.function(&call, 0, 1);
    CHECK(y == std::vector<uint8_t>{1, 0, 0, 1, 0, 0});
  }
}

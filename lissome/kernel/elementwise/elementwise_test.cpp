#include "lissome/kernel/elementwise/elementwise.h"

#include <algorithm>
#include <cstring>

#include "lissome/kernel/gemm/row_check.h"
#include "lissome/kernel/isa/convert_element.h"

using namespace lissome;

namespace {

void set_y(ElementwiseCall& call, float* y) { call.y = y; }

// One dense row of `count`.
ElementwiseCall make_call(int64_t count, std::initializer_list<const std::vector<float>*> operands) {
  ElementwiseCall call;
  call.sizes[0] = count;
  for (const auto* operand : operands) {
    call.x[call.operands - 1] = operand->data();
    call.strides[call.operands - 1][0] = 1;
    call.x_dtypes[call.operands - 1] = Dtype::f32;
    ++call.operands;
  }
  --call.operands;
  call.instructions = 0;
  for (uint8_t i = 0; i < call.operands; ++i) call.program[call.instructions++] = {ElementOp::load, i, i, 0, 0, 0, 0};
  return call;
}

}  // namespace

TEST_CASE("every element-wise operation agrees with the portable form") {
  for (const int64_t count : {1, 15, 16, 17, 256, 1000}) {
    TestNumbers numbers(static_cast<uint64_t>(count));
    auto a = numbers.reals(count), b = numbers.reals(count), c = numbers.reals(count);
    for (float& value : a) value = numbers.between(0, 4) == 0 ? 0 : value * 4;
    a[0] = std::numeric_limits<float>::quiet_NaN();
    if (count > 20) b[3] = a[0], b[7] = INFINITY, a[9] = -INFINITY, a[11] = b[11], a[12] = b[12];
    for (int op = static_cast<int>(ElementOp::constant); op <= static_cast<int>(ElementOp::quantize); ++op) {
      ElementwiseCall call = make_call(count, {&a, &b, &c});
      const bool activates = names_activation(static_cast<ElementOp>(op));
      for (int activation = 0; activation < (activates ? 12 : 1); ++activation) {
        const auto second = static_cast<uint8_t>(activates ? activation : 1);
        call.program[3] = {static_cast<ElementOp>(op), 4, 0, second, 2, 0.3f, 7};
        call.instructions = 4;
        CAPTURE(op);
        CAPTURE(activation);
        check_rows("elementwise", call, count, 2e-6f, set_y);
      }
    }
  }
}

TEST_CASE("element-wise chains broadcast and keep intermediate results") {
  TestNumbers numbers(4);
  const int64_t sizes[3] = {3, 5, 300};
  const auto a = numbers.reals(3 * 5 * 300), row = numbers.reals(300), column = numbers.reals(5);
  ElementwiseCall call = make_call(1, {&a, &row, &column});
  call.rank = 3;
  std::copy(sizes, sizes + 3, call.sizes);
  const int64_t strides[3][3] = {{1500, 300, 1}, {0, 0, 1}, {0, 1, 0}};
  for (int i = 0; i < 3; ++i) std::copy(strides[i], strides[i] + 3, call.strides[i]);
  call.program[3] = {ElementOp::multiply, 3, 0, 1, 0, 0, 0};
  call.program[4] = {ElementOp::add, 4, 3, 2, 0, 0, 0};
  call.program[5] = {ElementOp::activate, 4, 4, static_cast<uint8_t>(Activation::silu), 0, 0, 0};
  call.program[6] = {ElementOp::subtract, 5, 4, 3, 0, 0, 0};
  call.instructions = 7;
  check_rows("elementwise", call, 4500, 1e-6f, set_y);
  // A transposed operand.
  call.strides[0][1] = 1, call.strides[0][2] = 5;
  check_rows("elementwise", call, 4500, 1e-6f, set_y);
}

namespace {

// Dense memory of small whole numbers, in any order of the dimensions, any of them broadcast.
struct RandomOperand {
  std::vector<std::byte> data;
  Dtype dtype = Dtype::f32;
  int64_t strides[kElementRank] = {};

  RandomOperand(TestNumbers& numbers, const ElementwiseCall& call, std::initializer_list<Dtype> dtypes) {
    dtype = dtypes.begin()[numbers.between(0, static_cast<int>(dtypes.size()) - 1)];
    std::vector<int> order;
    for (int d = 0; d < call.rank; ++d) order.insert(order.begin() + numbers.between(0, d), d);
    if (numbers.between(0, 1) == 0) std::sort(order.begin(), order.end());
    int64_t elements = 1;
    for (int i = call.rank - 1; i >= 0; --i) {
      const int dim = order[static_cast<size_t>(i)];
      if (numbers.between(0, 3) == 0) continue;
      strides[dim] = elements;
      elements *= call.sizes[dim];
    }
    data.resize(static_cast<size_t>(elements * item_size(dtype)));
    for (int64_t i = 0; i < elements; ++i)
      write_element(dtype, data.data(), i, static_cast<float>(numbers.between(0, 40) - (dtype == Dtype::u8 ? 0 : 9)));
  }
};

// The sum of two operands times a third, over random sizes; `last` makes the result of it.
void check_random_chain(uint64_t seed, std::string_view kernel, std::initializer_list<Dtype> dtypes, Dtype result,
                        ElementInstruction last) {
  TestNumbers numbers(seed);
  ElementwiseCall call;
  call.rank = static_cast<uint8_t>(numbers.between(1, kElementRank));
  int64_t count = 1;
  for (int d = 0; d < call.rank; ++d) {
    call.sizes[d] = numbers.between(0, 3) == 0 ? numbers.between(1, 700 / (d + 1)) : numbers.between(1, 9);
    if (count * call.sizes[d] > 200'000) call.sizes[d] = 1;
    count *= call.sizes[d];
  }
  std::vector<RandomOperand> operands;
  for (int i = 0; i < 3; ++i) operands.emplace_back(numbers, call, dtypes);
  call.operands = 3, call.instructions = 6, call.y_dtype = result;
  for (uint8_t i = 0; i < 3; ++i) {
    call.x[i] = operands[i].data.data();
    call.x_dtypes[i] = operands[i].dtype;
    std::copy(operands[i].strides, operands[i].strides + kElementRank, call.strides[i]);
    call.program[i] = {ElementOp::load, i, i, 0, 0, 0, 0};
  }
  call.program[3] = {ElementOp::add, 3, 0, 1, 0, 0, 0};
  call.program[4] = {ElementOp::multiply, 4, 3, 2, 0, 0, 0};
  call.program[5] = last;
  CAPTURE(seed);
  check_rows(kernel, call, count * item_size(result) / 4 + 2, 0, set_y);
}

}  // namespace

TEST_CASE("element-wise chains over any sizes, orders and broadcasts, whose short rows are taken together") {
  const auto numbers = {Dtype::f32, Dtype::bf16, Dtype::u8, Dtype::boolean, Dtype::i8, Dtype::i32, Dtype::i64};
  const auto integers = {Dtype::u8, Dtype::boolean, Dtype::i8, Dtype::i32, Dtype::i64};
  for (uint64_t seed = 0; seed < 120; ++seed) {
    check_random_chain(seed, "elementwise", numbers, Dtype::f32, {ElementOp::negate, 5, 4, 0, 0, 0, 0});
    check_random_chain(seed, "elementwise", numbers, Dtype::u8, {ElementOp::quantize, 5, 4, 0, 0, 0.37f, 31});
    check_random_chain(seed, "elementwise", numbers, Dtype::boolean, {ElementOp::less, 5, 4, 1, 0, 0, 0});
    check_random_chain(seed, "elementwise", numbers, Dtype::bf16, {ElementOp::position, 5, 0, 0, 0, 2, 0.5f});
    check_random_chain(seed, "elementwise_integers", integers, Dtype::i64, {ElementOp::negate, 5, 4, 0, 0, 0, 0});
    check_random_chain(seed, "elementwise_integers", integers, Dtype::boolean, {ElementOp::less, 5, 4, 1, 0, 0, 0});
  }
}

TEST_CASE("element-wise chains read and write other dtypes") {
  const int64_t count = 77;
  TestNumbers numbers(8);
  std::vector<int64_t> wide(count);
  std::vector<uint8_t> bytes(count);
  for (int64_t i = 0; i < count; ++i) {
    wide[static_cast<size_t>(i)] = numbers.between(0, 2000) - 1000;
    bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(numbers.between(0, 255));
  }
  ElementwiseCall call;
  call.sizes[0] = count, call.operands = 2, call.instructions = 3;
  call.x[0] = wide.data(), call.x[1] = bytes.data();
  call.x_dtypes[0] = Dtype::i64, call.x_dtypes[1] = Dtype::u8;
  call.strides[0][0] = call.strides[1][0] = 1;
  call.program[0] = {ElementOp::load, 0, 0, 0, 0, 0, 0};
  call.program[1] = {ElementOp::load, 1, 1, 0, 0, 0, 0};
  call.program[2] = {ElementOp::less, 2, 0, 1, 0, 0, 0};
  for (const Dtype dtype : {Dtype::f32, Dtype::boolean, Dtype::i64, Dtype::i32, Dtype::u8, Dtype::bf16, Dtype::f16}) {
    call.y_dtype = dtype;
    check_rows("elementwise", call, 2 * count, 0, set_y);
  }
}

TEST_CASE("bf16 results are rounded to nearest even, NaN stays") {
  std::vector<float> x = {
      1.0f, 1.00390625f, 1.01171875f, -2.5f, 3e38f, INFINITY, std::numeric_limits<float>::quiet_NaN()};
  ElementwiseCall call = make_call(static_cast<int64_t>(x.size()), {&x});
  call.program[1] = {ElementOp::negate, 1, 0, 0, 0, 0, 0};
  call.instructions = 2;
  call.y_dtype = Dtype::bf16;
  for (const KernelRow& row : kernel_rows("elementwise")) {
    if (!can_run(row.isa)) continue;
    std::vector<uint16_t> y(x.size());
    call.y = y.data();
    row.function(&call, 0, 1);
    const std::vector<uint16_t> wanted = {0xbf80, 0xbf80, 0xbf82, 0x4020, 0xff62, 0xff80};
    CHECK(std::vector<uint16_t>(y.begin(), y.end() - 1) == wanted);
    CHECK((y.back() & 0x7fff) > 0x7f80);
  }
}

// Every row of "linear_bf16" against a plain loop over the same bf16 numbers, over odd shapes, epilogues and special
// numbers.
#include "lissome/kernel/gemm/linear_bf16.h"

#include <doctest/doctest.h>

#include <limits>

#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

struct Case {
  int64_t rows, inputs, outputs;
  Epilogue epilogue;
  ResidualPlace residual = ResidualPlace::none;
  bool bias = true;
  int64_t padding = 0;  // extra elements between rows
};

struct Arrays {
  std::vector<uint16_t> x, weight, packed, residual;
  std::vector<float> bias;
};

Arrays make_arrays(const Case& c, uint64_t seed) {
  TestNumbers numbers(seed);
  Arrays arrays;
  arrays.x = make_bf16(numbers, c.rows * (c.inputs + c.padding));
  arrays.weight = make_bf16(numbers, c.outputs * c.inputs);
  arrays.bias = numbers.reals(c.outputs);
  arrays.residual = make_bf16(numbers, c.rows * (c.outputs + c.padding));
  return arrays;
}

// What the sums are before they are rounded to bf16.
std::vector<float> find_expected(const Case& c, const Arrays& arrays) {
  std::vector<float> y;
  for (int64_t m = 0; m < c.rows; ++m) {
    for (int64_t n = 0; n < c.outputs; ++n) {
      double sum = c.bias ? arrays.bias[static_cast<size_t>(n)] : 0;
      for (int64_t k = 0; k < c.inputs; ++k) {
        sum += static_cast<double>(widen_bf16(arrays.x[static_cast<size_t>(m * (c.inputs + c.padding) + k)])) *
               widen_bf16(arrays.weight[static_cast<size_t>(n * c.inputs + k)]);
      }
      const double residual = widen_bf16(arrays.residual[static_cast<size_t>(m * (c.outputs + c.padding) + n)]);
      if (c.residual == ResidualPlace::before_activation) sum += residual;
      sum = activate(c.epilogue, sum);
      if (c.residual == ResidualPlace::after_activation) sum += residual;
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

std::vector<uint16_t> run_row(const KernelRow& row, const Case& c, const Arrays& arrays, int parts, bool in_place) {
  std::vector<uint16_t> y(static_cast<size_t>(c.rows * (c.outputs + c.padding)), 0x4444);
  if (in_place) y = arrays.residual;
  AlignedBytes scratch(parts * linear_bf16_scratch(c.rows, c.inputs));
  LinearBf16Call call;
  call.x = arrays.x.data();
  call.weight = arrays.packed.data();
  call.bias = c.bias ? arrays.bias.data() : nullptr;
  call.residual = in_place ? y.data() : arrays.residual.data();
  call.y = y.data();
  call.scratch = scratch.data();
  call.rows = c.rows, call.inputs = c.inputs, call.outputs = c.outputs;
  call.x_stride = c.inputs + c.padding;
  call.y_stride = call.residual_stride = c.outputs + c.padding;
  call.epilogue = c.epilogue;
  call.residual_place = c.residual;
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
  return y;
}

void check_case(const Case& c, Arrays arrays) {
  arrays.packed.resize(static_cast<size_t>(packed_linear_bf16_size(c.outputs, c.inputs)));
  pack_linear_bf16(arrays.weight.data(), c.outputs, c.inputs, c.inputs, 1, arrays.packed.data());
  const std::vector<float> expected = find_expected(c, arrays);
  // Rounding errors of a long sum grow with the square root of its length.
  const float tolerance = 1e-6f * std::sqrt(static_cast<float>(c.inputs)) + 2e-6f;
  for (const KernelRow& row : kernel_rows("linear_bf16")) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 2, 3}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      CAPTURE(c.rows);
      CAPTURE(c.inputs);
      CAPTURE(c.outputs);
      for (const bool in_place : {false, true}) {
        if (in_place && c.residual == ResidualPlace::none) continue;
        const auto y = run_row(row, c, arrays, parts, in_place);
        int64_t wrong = 0;
        for (int64_t m = 0; m < c.rows; ++m) {
          for (int64_t n = 0; n < c.outputs + c.padding; ++n) {
            const uint16_t seen = y[static_cast<size_t>(m * (c.outputs + c.padding) + n)];
            if (n < c.outputs) {
              wrong += !is_rounded(seen, expected[static_cast<size_t>(m * c.outputs + n)], tolerance);
            } else {
              wrong += !in_place && seen != 0x4444;
            }
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

void check_case(const Case& c, uint64_t seed) { check_case(c, make_arrays(c, seed)); }

}  // namespace

TEST_CASE("linear_bf16 agrees with plain sums on odd shapes") {
  uint64_t seed = 1;
  for (const int64_t rows : {1, 2, 3, 7, 12, 16, 17, 31, 32, 33, 67}) {
    for (const int64_t inputs : {1, 2, 31, 32, 33, 64, 97}) {
      for (const int64_t outputs : {1, 15, 16, 17, 32, 33, 61, 64}) {
        check_case({rows, inputs, outputs, {Activation::none}, ResidualPlace::none, rows % 2 == 0}, seed++);
      }
    }
  }
}

TEST_CASE("linear_bf16 agrees with plain sums on large and random shapes") {
  check_case({200, 1030, 190, {Activation::relu}}, 3);
  check_case({1, 4099, 257, {Activation::none}}, 4);
  check_case({130, 3072, 40, {Activation::none}}, 5);
  TestNumbers numbers(11);
  for (uint64_t i = 0; i < 30; ++i) {
    check_case({numbers.between(1, 110),
                numbers.between(1, 300),
                numbers.between(1, 300),
                {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f},
                static_cast<ResidualPlace>(numbers.between(0, 2)),
                numbers.between(0, 1) == 1,
                numbers.between(0, 5)},
               i);
  }
}

TEST_CASE("linear_bf16 applies every activation and residual place") {
  for (int activation = 0; activation <= static_cast<int>(Activation::clamp); ++activation) {
    for (int place = 0; place < 3; ++place) {
      check_case({35, 40, 70, {static_cast<Activation>(activation), 0.3f, 0.5f}, static_cast<ResidualPlace>(place)}, 5);
    }
  }
}

TEST_CASE("linear_bf16 keeps NaN and infinities where they are, whatever lies beside the inputs") {
  for (const int64_t inputs : {3, 32, 45}) {
    const Case c = {18, inputs, 37, {Activation::none}, ResidualPlace::none, true, 3};
    Arrays arrays = make_arrays(c, 7);
    const int64_t stride = inputs + c.padding;
    for (int64_t m = 0; m < c.rows; ++m) {
      for (int64_t n = inputs; n < stride; ++n) arrays.x[static_cast<size_t>(m * stride + n)] = 0x7fc0;
    }
    arrays.x[static_cast<size_t>(2 * stride + 1)] = 0x7fc0;                                       // NaN
    arrays.x[static_cast<size_t>(4 * stride)] = 0x7f80;                                           // infinity
    for (int64_t k = 0; k < inputs; ++k) arrays.x[static_cast<size_t>(6 * stride + k)] = 0;       // zeros
    for (int64_t k = 0; k < inputs; ++k) arrays.x[static_cast<size_t>(8 * stride + k)] = 0x7149;  // 1e30
    arrays.weight[static_cast<size_t>(5 * inputs)] = 0xff80;                                      // -infinity
    check_case(c, arrays);
  }
}

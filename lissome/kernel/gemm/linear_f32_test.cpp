// Every row of "linear_f32" against the portable one, over odd shapes, epilogues and special numbers.
#include "lissome/kernel/gemm/linear_f32.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

using namespace lissome;

namespace {

struct Case {
  int64_t rows, inputs, outputs;
  Epilogue epilogue;
  ResidualPlace residual = ResidualPlace::none;
  bool bias = true;
  int64_t padding = 0;  // extra elements between rows
  bool streams = false;
};

struct Arrays {
  std::vector<float> x, weight, packed, bias, residual;
};

Arrays make_arrays(const Case& c, uint64_t seed) {
  TestNumbers numbers(seed);
  Arrays arrays;
  arrays.x = numbers.reals(c.rows * (c.inputs + c.padding));
  arrays.weight = numbers.reals(c.outputs * c.inputs);
  arrays.bias = numbers.reals(c.outputs);
  arrays.residual = numbers.reals(c.rows * (c.outputs + c.padding));
  arrays.packed.resize(static_cast<size_t>(packed_linear_f32_size(c.outputs, c.inputs)));
  pack_linear_f32(arrays.weight.data(), c.outputs, c.inputs, c.inputs, 1, arrays.packed.data());
  return arrays;
}

std::vector<float> run_row(const KernelRow& row, const Case& c, const Arrays& arrays, int parts, bool in_place,
                           int64_t run = 0) {
  std::vector<float> y(static_cast<size_t>(c.rows * (c.outputs + c.padding)), 777.0f);
  if (in_place) y = arrays.residual;
  LinearF32Call call;
  call.x = arrays.x.data();
  call.weight = arrays.packed.data();
  call.bias = c.bias ? arrays.bias.data() : nullptr;
  call.residual = in_place ? y.data() : arrays.residual.data();
  call.y = y.data();
  call.rows = c.rows, call.inputs = c.inputs, call.outputs = c.outputs;
  call.x_stride = c.inputs + c.padding;
  call.y_stride = call.residual_stride = c.outputs + c.padding;
  call.epilogue = c.epilogue;
  call.residual_place = c.residual;
  call.streams = c.streams;
  call.run = &run;
  std::vector<float> scratch(static_cast<size_t>(parts * linear_f32_scratch(call)), 555.0f);
  call.scratch = scratch.empty() ? nullptr : scratch.data();
  for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
  return y;
}

void check_case(const Case& c, uint64_t seed) {
  const Arrays arrays = make_arrays(c, seed);
  const auto rows = kernel_rows("linear_f32");
  const std::vector<float> wanted = run_row(rows.back(), c, arrays, 1, false);
  const bool in_place = c.residual != ResidualPlace::none;
  // Rounding errors of a long sum grow with the square root of its length.
  const float tolerance = 1e-6f * std::sqrt(static_cast<float>(c.inputs)) + 2e-6f;
  for (const KernelRow& row : rows) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 2, 3}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      CAPTURE(c.rows);
      CAPTURE(c.inputs);
      CAPTURE(c.outputs);
      CHECK(count_differences(run_row(row, c, arrays, parts, false), wanted, tolerance) == 0);
      if (in_place) {
        const auto y = run_row(row, c, arrays, parts, true);
        int64_t wrong = 0;
        for (int64_t m = 0; m < c.rows; ++m) {
          for (int64_t n = 0; n < c.outputs; ++n) {
            const auto at = static_cast<size_t>(m * (c.outputs + c.padding) + n);
            wrong += !close_enough(y[at], wanted[at], tolerance);
          }
        }
        CHECK(wrong == 0);
      }
    }
  }
}

}  // namespace

TEST_CASE("linear_f32 agrees with the portable form over odd shapes") {
  for (const int64_t rows : {1, 2, 5, 6, 7, 13, 64}) {
    for (const int64_t outputs : {1, 10, 16, 17, 63, 64, 65, 130}) {
      for (const int64_t inputs : {1, 3, 8, 97}) {
        check_case({rows, inputs, outputs, {}, ResidualPlace::none, outputs % 2 == 0, rows % 3}, 7);
      }
    }
  }
}

TEST_CASE("linear_f32 agrees with the portable form on large and random shapes") {
  TestNumbers numbers(11);
  check_case({200, 1030, 190, {Activation::relu}}, 3);
  check_case({1, 4099, 257, {Activation::none}}, 4);
  check_case({300, 700, 130, {Activation::gelu}, ResidualPlace::after_activation}, 5);
  check_case({50, 1500, 20, {Activation::none}, ResidualPlace::before_activation}, 6);
  for (int i = 0; i < 20; ++i) {
    check_case({numbers.between(1, 80),
                numbers.between(1, 300),
                numbers.between(1, 300),
                {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f},
                static_cast<ResidualPlace>(numbers.between(0, 2)),
                numbers.between(0, 1) == 1,
                numbers.between(0, 5)},
               static_cast<uint64_t>(i));
  }
}

TEST_CASE("linear_f32 reads the weights of a single row from several places") {
  for (const int64_t inputs : {97, 700, 4099}) {
    check_case({1, inputs, 3001, {Activation::relu}, ResidualPlace::none, true, 0, true}, 8);
    check_case({1, inputs, 3001, {}, ResidualPlace::before_activation, false, 3, true}, 9);
  }
  check_case({1, 1 << 17, 5, {}, ResidualPlace::none, true, 0, true}, 10);
  check_case({7, 700, 600, {}, ResidualPlace::none, true, 0, true}, 11);
}

TEST_CASE("linear_f32 gives the same bits for a single row whichever end of the weights it begins at") {
  for (const int64_t outputs : {10, 130, 512, 1000}) {
    const Case c = {1, 784, outputs, {Activation::relu}};
    const Arrays arrays = make_arrays(c, 12);
    check_case(c, 12);
    for (const KernelRow& row : kernel_rows("linear_f32")) {
      if (!can_run(row.isa)) continue;
      for (const int parts : {1, 2, 3}) {
        CAPTURE(isa_name(row.isa));
        CAPTURE(parts);
        CAPTURE(outputs);
        CHECK(run_row(row, c, arrays, parts, false, 1) == run_row(row, c, arrays, parts, false, 0));
      }
    }
  }
}

TEST_CASE("linear_f32 applies every activation and residual place") {
  for (int activation = 0; activation <= static_cast<int>(Activation::clamp); ++activation) {
    for (int place = 0; place < 3; ++place) {
      check_case({9, 40, 70, {static_cast<Activation>(activation), 0.3f, 0.5f}, static_cast<ResidualPlace>(place)}, 5);
    }
  }
}

TEST_CASE("activations keep NaN and infinities, over the whole range") {
  // A linear with one input of weight one is the activation itself.
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1e-30f,
                          -1e-30f,
                          1e-3f,
                          -1e-3f,
                          30.0f,
                          -30.0f,
                          100.0f,
                          -100.0f,
                          3e38f,
                          -3e38f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  for (float value = -12; value < 12; value += 0.037f) x.push_back(value);
  std::vector<float> weight(static_cast<size_t>(packed_linear_f32_size(1, 1)), 0.0f);
  weight[0] = 1;
  for (int activation = 0; activation <= static_cast<int>(Activation::clamp); ++activation) {
    LinearF32Call call;
    call.x = x.data(), call.weight = weight.data();
    call.rows = static_cast<int64_t>(x.size()), call.inputs = call.outputs = 1;
    call.x_stride = call.y_stride = 1;
    call.epilogue = {static_cast<Activation>(activation), 0.3f, 0.5f};
    for (const KernelRow& row : kernel_rows("linear_f32")) {
      if (!can_run(row.isa)) continue;
      std::vector<float> y(x.size());
      call.y = y.data();
      row.function(&call, 0, 1);
      for (size_t i = 0; i < x.size(); ++i) {
        CAPTURE(activation_name(call.epilogue.activation));
        CAPTURE(isa_name(row.isa));
        CAPTURE(x[i]);
        const float wanted = static_cast<float>(activate(call.epilogue, x[i]));
        if (std::isfinite(wanted)) {
          CHECK(std::fabs(y[i] - wanted) <= 1e-6f * std::fmax(std::fabs(wanted), std::fmin(1.0f, std::fabs(x[i]))));
        } else {
          CHECK(close_enough(y[i], wanted, 0));
        }
      }
    }
  }
}

TEST_CASE("linear_f32 keeps infinities, NaN and large numbers among many rows") {
  Case c{70, 96, 80, {}, ResidualPlace::none};
  Arrays arrays = make_arrays(c, 9);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto check = [&] {
    const auto rows = kernel_rows("linear_f32");
    const std::vector<float> wanted = run_row(rows.back(), c, arrays, 1, false);
    for (const KernelRow& row : rows) {
      if (!can_run(row.isa)) continue;
      CAPTURE(isa_name(row.isa));
      for (const int parts : {1, 2})
        CHECK(count_differences(run_row(row, c, arrays, parts, false), wanted, 2e-5f) == 0);
    }
  };
  for (float& x : arrays.weight) x = 1;
  pack_linear_f32(arrays.weight.data(), c.outputs, c.inputs, c.inputs, 1, arrays.packed.data());
  arrays.x[5 * 96 + 3] = infinity;
  arrays.x[40 * 96 + 95] = -infinity;
  check();
  arrays.x[69 * 96] = std::numeric_limits<float>::quiet_NaN();
  check();
  arrays = make_arrays(c, 10);
  arrays.x[7] = 3e38f, arrays.weight[7] = 1e-3f, arrays.x[8] = 1e-37f;
  pack_linear_f32(arrays.weight.data(), c.outputs, c.inputs, c.inputs, 1, arrays.packed.data());
  check();
}

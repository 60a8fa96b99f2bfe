// Every row of the int8 kernels against the portable ones: the same bits, as long as no activation rounds.
#include "lissome/kernel/gemm/linear_u8s8.h"

#include <doctest/doctest.h>

#include <limits>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/test_u8s8.h"

using namespace lissome;

namespace {

void check_linear(int64_t rows, int64_t inputs, int64_t outputs, uint64_t seed) {
  TestNumbers numbers(seed);
  const int64_t padding = numbers.between(0, 3);
  const Bytes bytes = make_bytes(numbers, rows * (inputs + padding), outputs * inputs);
  const Surroundings around(numbers, rows, outputs);
  std::vector<int8_t> packed(static_cast<size_t>(packed_u8s8_size(outputs, inputs, {})));
  std::vector<int32_t> sums(static_cast<size_t>(outputs));
  pack_u8s8(bytes.weight.data(), outputs, inputs, {}, packed.data(), sums.data());
  LinearU8S8Call call;
  call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data();
  call.rows = rows, call.inputs = inputs, call.outputs = outputs, call.x_stride = inputs + padding;
  around.fill(numbers, call, outputs, true);
  check_rows("linear_u8s8", call, rows * outputs, seed);
}

}  // namespace

TEST_CASE("linear_u8s8 gives the bits of the portable form over odd shapes") {
  uint64_t seed = 1;
  for (const int64_t rows : {1, 3, 6, 13, 37}) {
    for (const int64_t outputs : {1, 16, 17, 64, 130}) {
      for (const int64_t inputs : {1, 3, 4, 64, 97, 128}) check_linear(rows, inputs, outputs, seed++);
    }
  }
  check_linear(70, 1030, 190, seed++);
  check_linear(129, 384, 96, seed++);
  check_linear(7, 33'001, 40, seed);
}

TEST_CASE("linear_u8s8 spreads blocks of outputs over an image") {
  for (uint64_t seed = 300; seed < 306; ++seed) {
    TestNumbers numbers(seed);
    const int64_t height = 3, width = numbers.between(1, 20), inputs = numbers.between(1, 130),
                  block = 32 + seed % 2 * 32;
    const int64_t rows = 2 * height * width, outputs = 6 * block;
    const Bytes bytes = make_bytes(numbers, rows * inputs, outputs * inputs);
    const Surroundings around(numbers, rows, outputs);
    std::vector<int8_t> packed(static_cast<size_t>(packed_u8s8_size(outputs, inputs, {})));
    std::vector<int32_t> sums(static_cast<size_t>(outputs));
    pack_u8s8(bytes.weight.data(), outputs, inputs, {}, packed.data(), sums.data());
    LinearU8S8Call call;
    call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data();
    call.rows = rows, call.inputs = call.x_stride = inputs, call.outputs = outputs;
    around.fill(numbers, call, outputs, false);
    call.residual = nullptr, call.residual_u8 = nullptr, call.residual_bf16 = nullptr;
    call.spread = {width, 2, 3, block}, call.y_stride = 3 * block;
    check_rows("linear_u8s8", call, rows * outputs, seed);
  }
}

TEST_CASE("linear_u8s8 does not saturate on extreme numbers") {
  const int64_t inputs = 64, outputs = 64;
  const std::vector<uint8_t> x(static_cast<size_t>(inputs), 255);
  const std::vector<int8_t> weight(static_cast<size_t>(inputs * outputs), 127);
  std::vector<int8_t> packed(static_cast<size_t>(packed_u8s8_size(outputs, inputs, {})));
  std::vector<int32_t> sums(static_cast<size_t>(outputs));
  const std::vector<float> ones(static_cast<size_t>(outputs), 1.0f);
  pack_u8s8(weight.data(), outputs, inputs, {}, packed.data(), sums.data());
  LinearU8S8Call call;
  call.x = x.data(), call.weight = packed.data(), call.weight_sums = sums.data(), call.multiplier = ones.data();
  call.rows = 1, call.inputs = call.x_stride = inputs, call.outputs = call.y_stride = outputs;
  for (const KernelRow& row : kernel_rows("linear_u8s8")) {
    if (!can_run(row.isa)) continue;
    CHECK(run_row(row, call, outputs, 1) == std::vector<float>(64, 255.0f * 127 * 64));
  }
}

TEST_CASE("linear_u8s8 stops at the ends of a byte whatever the result, and gives 0 for NaN") {
  const int64_t rows = 13, inputs = 8, outputs = 96;
  TestNumbers numbers(400);
  const Bytes bytes = make_bytes(numbers, rows * inputs, outputs * inputs);
  std::vector<int8_t> packed(static_cast<size_t>(packed_u8s8_size(outputs, inputs, {})));
  std::vector<int32_t> sums(static_cast<size_t>(outputs));
  pack_u8s8(bytes.weight.data(), outputs, inputs, {}, packed.data(), sums.data());
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {nan, infinity, -infinity, 3e38f, -3e38f, 1e10f, 0.0f, 1e-40f};
  std::vector<float> multiplier, bias;
  for (size_t n = 0; n < static_cast<size_t>(outputs); ++n) {
    multiplier.push_back(special[n % 8]);
    bias.push_back(n < 32 ? special[n / 8] : 0.5f);
  }
  LinearU8S8Call call;
  call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data();
  call.multiplier = multiplier.data(), call.bias = bias.data();
  call.rows = rows, call.inputs = call.x_stride = inputs, call.outputs = call.y_stride = outputs;
  call.x_zero = 100, call.out_inverse = 3.0f, call.out_zero = 17;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::clamp}) {
    call.epilogue = {activation, -2.0f, 6.0f};
    check_rows("linear_u8s8", call, rows * outputs, 400);
  }
}

namespace {

void check_conv(Window w, int64_t groups, int64_t inputs, int64_t outputs, uint64_t seed) {
  TestNumbers numbers(seed);
  w = finish_window(w);
  const RunsU8S8 runs = choose_runs(w, groups);
  const int64_t rows = w.batch * w.out_height * w.out_width;
  const Bytes bytes =
      make_bytes(numbers, w.batch * w.height * w.width * inputs * groups, groups * outputs * inputs * runs.taps);
  const Surroundings around(numbers, rows, groups * outputs);
  const int64_t block = packed_u8s8_size(outputs, inputs, runs);
  std::vector<int8_t> packed(static_cast<size_t>(groups * block));
  std::vector<int32_t> sums(static_cast<size_t>(groups * outputs));
  for (int64_t g = 0; g < groups; ++g) {
    pack_u8s8(bytes.weight.data() + g * outputs * inputs * runs.taps, outputs, inputs, runs, packed.data() + g * block,
              sums.data() + g * outputs);
  }
  ConvU8S8Call call;
  call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data();
  call.in_channels = groups * inputs, call.out_channels = groups * outputs, call.groups = groups, call.window = w;
  around.fill(numbers, call, groups * outputs, false);
  const std::vector<uint8_t> border(static_cast<size_t>(groups * inputs), static_cast<uint8_t>(call.x_zero));
  call.border = border.data();
  std::vector<std::byte> scratch(static_cast<size_t>(3 * conv_u8s8_scratch(w, groups * inputs)) + 64);
  call.scratch = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  check_rows("conv_u8s8", call, rows * groups * outputs, seed);
}

}  // namespace

TEST_CASE("conv_u8s8 gives the bits of the portable form") {
  TestNumbers numbers(5);
  for (uint64_t seed = 10; seed < 110; ++seed) {
    Window w;
    w.batch = numbers.between(1, 2), w.height = numbers.between(5, 9), w.width = numbers.between(5, 39);
    w.kernel_height = numbers.between(1, 3), w.kernel_width = numbers.between(1, 3);
    w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
    w.pad_height = numbers.between(0, 2), w.pad_width = numbers.between(0, 2);
    w.dilation_height = numbers.between(1, 2), w.dilation_width = numbers.between(1, 2);
    const int64_t groups = numbers.between(1, 3);
    check_conv(w, groups, numbers.between(1, 20), numbers.between(1, 70), seed);
  }
}

TEST_CASE("conv_u8s8 over images of several bands, and windows of several steps") {
  Window w;
  w.height = w.width = 61, w.kernel_height = w.kernel_width = 3, w.pad_height = w.pad_width = 1;
  check_conv(w, 1, 96, 33, 200);
  w.stride_height = w.stride_width = 2, w.batch = 2;
  check_conv(w, 1, 64, 64, 201);
  w.kernel_height = w.kernel_width = 7, w.pad_height = w.pad_width = 3;
  check_conv(w, 1, 3, 64, 202);
  w.kernel_height = w.kernel_width = 1, w.pad_height = w.pad_width = 0;
  check_conv(w, 1, 128, 48, 203);
  w.stride_height = 1, w.stride_width = 1;
  check_conv(w, 1, 60, 40, 204);
}

TEST_CASE("quantize_rows gives the bits of the portable form, special rows included") {
  TestNumbers numbers(9);
  const int64_t rows = 40;
  for (const int64_t inputs : {1, 7, 16, 100}) {
    std::vector<float> x = numbers.reals(rows * inputs);
    const auto row = [&](int64_t m) { return x.data() + m * inputs; };
    for (int64_t k = 0; k < inputs; ++k) {
      row(0)[k] = 0, row(1)[k] = 5, row(2)[k] = -5, row(3)[k] *= 1e-35f, row(4)[k] *= 1e38f;
    }
    row(5)[inputs / 2] = std::numeric_limits<float>::quiet_NaN();
    row(6)[inputs - 1] = std::numeric_limits<float>::infinity();
    row(7)[0] = -3.4e38f;
    if (inputs > 1) row(7)[1] = 3.4e38f;
    std::vector<uint16_t> halves;
    for (const float value : x) halves.push_back(narrow_bf16(value));
    const std::vector<float> factors = numbers.reals(inputs);
    std::vector<uint16_t> half_factors;
    for (const float factor : factors) half_factors.push_back(narrow_bf16(factor));
    bool narrow = false, scaled = false;
    const auto run = [&](const KernelRow& kernel) {
      std::vector<uint8_t> y(x.size(), 99);
      std::vector<float> scales(static_cast<size_t>(rows));
      std::vector<int32_t> zeros(static_cast<size_t>(rows));
      QuantizeRowsCall call;
      if (narrow) {
        call.x_bf16 = halves.data(), call.factors_bf16 = scaled ? half_factors.data() : nullptr;
      } else {
        call.x = x.data(), call.factors = scaled ? factors.data() : nullptr;
      }
      call.y = y.data(), call.scales = scales.data(), call.zeros = zeros.data();
      call.rows = rows, call.inputs = call.x_stride = call.y_stride = inputs;
      for (int part = 0; part < 3; ++part) kernel.function(&call, part, 3);
      std::vector<float> all(y.begin(), y.end());
      all.insert(all.end(), scales.begin(), scales.end());
      all.insert(all.end(), zeros.begin(), zeros.end());
      return all;
    };
    const auto kernels = kernel_rows("quantize_rows");
    // What the factors do: the same as rows that were multiplied before.
    scaled = true;
    const auto multiplied = run(kernels.back());
    std::vector<float> plain = x;
    for (size_t i = 0; i < plain.size(); ++i) plain[i] *= factors[i % static_cast<size_t>(inputs)];
    std::swap(x, plain);
    scaled = false;
    CHECK(count_differences(run(kernels.back()), multiplied, 0) == 0);
    std::swap(x, plain);
    for (const int form : {0, 1, 2, 3}) {
      narrow = form % 2 != 0, scaled = form / 2 != 0;
      const auto wanted = run(kernels.back());
      for (const KernelRow& kernel : kernels) {
        if (!can_run(kernel.isa)) continue;
        CAPTURE(isa_name(kernel.isa));
        CHECK(count_differences(run(kernel), wanted, 0) == 0);
      }
    }
  }
}

TEST_CASE("quantize_image gives the bits of the portable form") {
  TestNumbers numbers(11);
  for (const int64_t channels : {1, 2, 3, 4}) {
    for (const int64_t pixels : {1, 15, 49, 160}) {
      const int64_t batch = 2, count = batch * channels * pixels;
      std::vector<float> x = numbers.reals(count);
      x[0] = std::numeric_limits<float>::quiet_NaN();
      x[static_cast<size_t>(count) - 1] = std::numeric_limits<float>::infinity();
      const auto run = [&](const KernelRow& kernel) {
        std::vector<uint8_t> y(static_cast<size_t>(count), 99);
        QuantizeImageCall call;
        call.x = x.data(), call.y = y.data(), call.batch = batch, call.channels = channels, call.pixels = pixels;
        call.inverse = 100.0f, call.zero = 120;
        for (const int part : {2, 1, 0}) kernel.function(&call, part, 3);
        return y;
      };
      const auto kernels = kernel_rows("quantize_image");
      const auto wanted = run(kernels.back());
      for (const KernelRow& kernel : kernels) {
        CAPTURE(isa_name(kernel.isa));
        if (can_run(kernel.isa)) CHECK(run(kernel) == wanted);
      }
    }
  }
}

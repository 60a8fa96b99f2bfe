// Every row of "conv_f32" against the portable one.
#include "lissome/kernel/conv/conv_f32.h"

#include <doctest/doctest.h>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/test_arrays.h"

using namespace lissome;

namespace {

struct Case {
  Window window;
  int64_t in_channels, out_channels, groups = 1;
  Epilogue epilogue;
  ResidualPlace residual = ResidualPlace::none;
};

// Channels-last images as planes.
std::vector<float> lay_planes(const std::vector<float>& x, int64_t pixels, int64_t channels) {
  std::vector<float> planes(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i), c = at % channels, pixel = at / channels % pixels;
    const int64_t image = at / channels / pixels;
    planes[static_cast<size_t>((image * channels + c) * pixels + pixel)] = x[i];
  }
  return planes;
}

void check_case(const Case& c, uint64_t seed) {
  const Window w = finish_window(c.window);
  REQUIRE(w.out_height > 0);
  REQUIRE(w.out_width > 0);
  TestNumbers numbers(seed);
  const int64_t taps = w.kernel_height * w.kernel_width, pixels = w.batch * w.out_height * w.out_width;
  const auto x = numbers.reals(w.batch * w.height * w.width * c.in_channels);
  const auto weight = numbers.reals(c.out_channels * c.in_channels / c.groups * taps);
  const auto bias = numbers.reals(c.out_channels), residual = numbers.reals(pixels * c.out_channels);
  const std::vector<float> zeros(static_cast<size_t>(c.in_channels), 0.0f);
  std::vector<float> packed(static_cast<size_t>(packed_conv_f32_size(c.out_channels, c.in_channels, c.groups, taps)));
  pack_conv_f32(weight.data(), c.out_channels, c.in_channels, c.groups, taps, packed.data());
  ConvF32Call call;
  call.x = x.data(), call.weight = packed.data(), call.zeros = zeros.data(), call.bias = bias.data();
  call.residual = residual.data(), call.residual_place = c.residual, call.epilogue = c.epilogue;
  call.in_channels = c.in_channels, call.out_channels = c.out_channels, call.groups = c.groups;
  call.y_stride = call.residual_stride = c.out_channels;
  call.window = w;
  const auto run = [&](const KernelRow& row, int parts) {
    std::vector<float> y(static_cast<size_t>(pixels * c.out_channels), 777.0f);
    call.y = y.data();
    std::vector<float> scratch(static_cast<size_t>(parts * conv_f32_scratch(call)), 555.0f);
    call.scratch = scratch.empty() || call.band ? nullptr : scratch.data();
    for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
    return y;
  };
  const auto run_planes = [&](const KernelRow& row, int parts) {
    const std::vector<float> planes = lay_planes(x, w.height * w.width, c.in_channels);
    std::vector<float> band(static_cast<size_t>(parts * conv_f32_band(call)), 555.0f);
    call.x = planes.data(), call.band = band.data();
    const std::vector<float> y = run(row, parts);
    call.x = x.data(), call.band = nullptr;
    return y;
  };
  const auto rows = kernel_rows("conv_f32");
  const auto wanted = run(rows.back(), 1);
  const float tolerance = 1e-6f * std::sqrt(static_cast<float>(taps * c.in_channels / c.groups)) + 2e-6f;
  for (const KernelRow& row : rows) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 3}) {
      CAPTURE(isa_name(row.isa));
      CAPTURE(seed);
      CHECK(count_differences(run(row, parts), wanted, tolerance) == 0);
      if (c.groups == 1) CHECK(count_differences(run_planes(row, parts), wanted, tolerance) == 0);
    }
  }
}

}  // namespace

TEST_CASE("conv_f32 agrees with the portable form over windows, strides, groups and epilogues") {
  check_case(
      {{.batch = 1, .height = 8, .width = 8, .kernel_height = 3, .kernel_width = 3, .pad_height = 1, .pad_width = 1},
       3,
       64,
       1,
       {Activation::relu},
       ResidualPlace::none},
      1);
  check_case({{.batch = 2, .height = 7, .width = 5}, 65, 17, 1, {}, ResidualPlace::none}, 2);
  check_case({{.batch = 1, .height = 1, .width = 30, .kernel_width = 5, .stride_width = 2, .pad_width = 2},
              4,
              70,
              1,
              {},
              ResidualPlace::none},
             3);
  TestNumbers numbers(5);
  for (uint64_t seed = 10; seed < 60; ++seed) {
    Case c;
    Window& w = c.window;
    w.batch = numbers.between(1, 3), w.height = numbers.between(5, 12), w.width = numbers.between(5, 12);
    w.kernel_height = numbers.between(1, 3), w.kernel_width = numbers.between(1, 3);
    w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
    w.pad_height = numbers.between(0, 2), w.pad_width = numbers.between(0, 2);
    w.dilation_height = numbers.between(1, 2), w.dilation_width = numbers.between(1, 2);
    c.groups = numbers.between(1, 4);
    c.in_channels = c.groups * numbers.between(1, 20), c.out_channels = c.groups * numbers.between(1, 40);
    c.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
    c.residual = static_cast<ResidualPlace>(numbers.between(0, 2));
    check_case(c, seed);
  }
}

TEST_CASE("conv_f32 agrees with the portable form on long sums, first layers and images of many rows") {
  const auto square = [](int64_t side, int64_t kernel, int64_t stride) {
    return Window{.height = side,
                  .width = side,
                  .kernel_height = kernel,
                  .kernel_width = kernel,
                  .stride_height = stride,
                  .stride_width = stride,
                  .pad_height = kernel / 2,
                  .pad_width = kernel / 2};
  };
  check_case({square(7, 3, 1), 260, 70, 1, {Activation::relu}, ResidualPlace::before_activation}, 1);
  check_case({square(9, 3, 2), 700, 20, 1, {Activation::gelu}, ResidualPlace::after_activation}, 2);
  check_case({square(6, 1, 1), 2001, 65, 1, {}, ResidualPlace::none}, 3);
  check_case({square(40, 7, 2), 3, 64, 1, {Activation::relu}, ResidualPlace::none}, 4);
  check_case({square(37, 5, 1), 1, 33, 1, {}, ResidualPlace::none}, 5);
  check_case({square(31, 7, 1), 3, 40, 1, {}, ResidualPlace::none}, 7);
  check_case({square(30, 3, 2), 16, 24, 1, {}, ResidualPlace::none}, 8);
  check_case({square(29, 11, 4), 2, 64, 1, {Activation::relu}, ResidualPlace::none}, 9);
  check_case({square(33, 3, 1), 40, 66, 1, {}, ResidualPlace::none}, 6);
}

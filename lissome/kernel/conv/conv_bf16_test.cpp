// The portable "conv_bf16" against a plain loop that adds each product where it belongs, and every row against the
// portable one.
#include "lissome/kernel/conv/conv_bf16.h"

#include <doctest/doctest.h>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

struct Case {
  Window window;
  int64_t in_channels, out_channels, groups = 1;
  Epilogue epilogue;
  ResidualPlace residual = ResidualPlace::none;
  bool transposed = false;
  bool special = false;  // some inputs are NaN or infinite
  int planes = 0;        // 1: x is brought into planes; 2: in f32
};

struct Arrays {
  std::vector<uint16_t> x, weight, packed, residual;
  std::vector<float> bias;
};

// From each pixel of y to the pixels of x that it reads, or the other way round.
std::vector<double> find_sums(const ConvBf16Call& call, const std::vector<uint16_t>& weight) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  std::vector<double> y(static_cast<size_t>(w.batch * w.out_height * w.out_width * call.out_channels));
  for (size_t i = 0; i < y.size(); ++i) y[i] = call.bias ? call.bias[i % static_cast<size_t>(call.out_channels)] : 0;
  const int64_t from_height = call.transposed ? w.height : w.out_height;
  const int64_t from_width = call.transposed ? w.width : w.out_width;
  const int64_t to_height = call.transposed ? w.out_height : w.height;
  const int64_t to_width = call.transposed ? w.out_width : w.width;
  for (int64_t place = 0; place < w.batch * from_height * from_width; ++place) {
    const int64_t n = place / from_height / from_width;
    for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
      const int64_t h =
          place / from_width % from_height * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
      const int64_t v = place % from_width * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
      if (h < 0 || h >= to_height || v < 0 || v >= to_width) continue;
      const int64_t other = (n * to_height + h) * to_width + v;
      const int64_t in = call.transposed ? place : other, out = call.transposed ? other : place;
      for (int64_t oc = 0; oc < call.out_channels; ++oc) {
        for (int64_t ic = 0; ic < inputs; ++ic) {
          const int64_t row =
              call.transposed ? (oc / outputs * inputs + ic) * outputs + oc % outputs : oc * inputs + ic;
          y[static_cast<size_t>(out * call.out_channels + oc)] +=
              static_cast<double>(widen_bf16(call.x[in * call.in_channels + oc / outputs * inputs + ic])) *
              widen_bf16(weight[static_cast<size_t>(row * w.kernel_height * w.kernel_width + tap)]);
        }
      }
    }
  }
  return y;
}

std::vector<float> find_expected(const ConvBf16Call& call, const Arrays& arrays) {
  std::vector<float> y;
  for (double sum : find_sums(call, arrays.weight)) {
    const double residual = widen_bf16(arrays.residual[y.size()]);
    if (call.residual_place == ResidualPlace::before_activation) sum += residual;
    sum = activate(call.epilogue, sum);
    if (call.residual_place == ResidualPlace::after_activation) sum += residual;
    y.push_back(static_cast<float>(sum));
  }
  return y;
}

Arrays make_arrays(const Case& c, const Window& w, uint64_t seed) {
  TestNumbers numbers(seed);
  Arrays arrays;
  arrays.x = make_bf16(numbers, w.batch * w.height * w.width * c.in_channels);
  if (c.special) {
    arrays.x[arrays.x.size() / 2] = 0x7fc0;  // NaN
    arrays.x[arrays.x.size() / 5] = 0x7f80;  // infinity
    arrays.x[arrays.x.size() - 1] = 0xff80;
  }
  arrays.weight = make_bf16(numbers, c.out_channels * c.in_channels / c.groups * w.kernel_height * w.kernel_width);
  arrays.bias = numbers.reals(c.out_channels);
  arrays.residual = make_bf16(numbers, w.batch * w.out_height * w.out_width * c.out_channels);
  return arrays;
}

std::vector<uint16_t> separate_planes(const ConvBf16Call& call, const std::vector<uint16_t>& x) {
  const int64_t plane = call.window.height * call.window.width, channels = call.in_channels;
  std::vector<uint16_t> planes(x.size());
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    const int64_t pixel = i / channels, n = pixel / plane;
    planes[static_cast<size_t>((n * channels + i % channels) * plane + pixel % plane)] = x[static_cast<size_t>(i)];
  }
  return planes;
}

void check_case(const Case& c, uint64_t seed) {
  const Window w = finish_window(c.window, c.transposed);
  REQUIRE(w.out_height > 0);
  REQUIRE(w.out_width > 0);
  Arrays arrays = make_arrays(c, w, seed);
  ConvBf16Call call;
  call.window = w, call.transposed = c.transposed;
  call.in_channels = c.in_channels, call.out_channels = c.out_channels, call.groups = c.groups;
  arrays.packed.resize(static_cast<size_t>(packed_conv_bf16_size(call)));
  pack_conv_bf16(call, arrays.weight.data(), arrays.packed.data());
  call.x = arrays.x.data(), call.weight = arrays.packed.data();
  call.bias = seed % 3 == 0 ? nullptr : arrays.bias.data();
  call.residual_place = c.residual, call.epilogue = c.epilogue;
  call.y_stride = call.residual_stride = c.out_channels;
  call.scratch_part = conv_bf16_scratch(call);
  const std::vector<float> expected = find_expected(call, arrays);
  const std::vector<uint16_t> planes = separate_planes(call, arrays.x);
  std::vector<float> wide;
  for (const uint16_t value : planes) wide.push_back(widen_bf16(value));
  if (c.planes != 0) {
    call.planes = true, call.x = c.planes == 1 ? planes.data() : nullptr;
    call.wide_planes = c.planes == 2 ? wide.data() : nullptr;
    call.scratch_part = conv_bf16_scratch(call);
  }
  const auto inputs = static_cast<float>(w.kernel_height * w.kernel_width * c.in_channels / c.groups);
  const float tolerance = 1e-6f * std::sqrt(inputs) + 2e-6f;
  for (const KernelRow& row : kernel_rows("conv_bf16")) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 2, 3}) {
      AlignedBytes scratch(parts * call.scratch_part);
      std::vector<uint16_t> y(expected.size(), 0x4444);
      // In place of the residual, as plans do.
      if (seed % 2 == 0 && c.residual != ResidualPlace::none) y = arrays.residual;
      call.y = y.data(), call.scratch = scratch.data();
      call.residual = y == arrays.residual ? y.data() : arrays.residual.data();
      for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
      int64_t wrong = 0;
      for (size_t i = 0; i < y.size(); ++i) wrong += !is_rounded(y[i], expected[i], tolerance);
      CAPTURE(isa_name(row.isa));
      CAPTURE(parts);
      CAPTURE(seed);
      CHECK(wrong == 0);
    }
  }
}

Case draw_case(TestNumbers& numbers) {
  Case c;
  Window& w = c.window;
  w.batch = numbers.between(1, 3), w.height = numbers.between(5, 12), w.width = numbers.between(5, 12);
  w.kernel_height = numbers.between(1, 3), w.kernel_width = numbers.between(1, 3);
  w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
  w.pad_height = numbers.between(0, 2), w.pad_width = numbers.between(0, 2);
  w.dilation_height = numbers.between(1, 2), w.dilation_width = numbers.between(1, 2);
  c.groups = numbers.between(1, 3);
  c.epilogue = {static_cast<Activation>(numbers.between(0, 11)), 0.1f, 0.8f};
  c.residual = static_cast<ResidualPlace>(numbers.between(0, 2));
  return c;
}

}  // namespace

TEST_CASE("conv_bf16 agrees with plain sums through columns") {
  TestNumbers numbers(5);
  for (uint64_t seed = 10; seed < 50; ++seed) {
    Case c = draw_case(numbers);
    c.in_channels = c.groups * numbers.between(1, 20), c.out_channels = c.groups * numbers.between(1, 40);
    c.special = seed % 8 == 0;
    check_case(c, seed);
  }
}

TEST_CASE("conv_bf16 agrees with plain sums where channels are whole steps") {
  TestNumbers numbers(6);
  for (uint64_t seed = 50; seed < 110; ++seed) {
    Case c = draw_case(numbers);
    c.in_channels = c.groups * 32 * numbers.between(1, 2), c.out_channels = c.groups * numbers.between(1, 70);
    c.special = seed % 8 == 0;
    check_case(c, seed);
  }
}

TEST_CASE("conv_bf16 agrees with plain sums where a window is a pixel") {
  TestNumbers numbers(9);
  for (uint64_t seed = 400; seed < 440; ++seed) {
    Case c = draw_case(numbers);
    c.window = {.batch = numbers.between(1, 2), .height = numbers.between(1, 9), .width = numbers.between(1, 9)};
    c.in_channels = c.groups * numbers.between(1, 70), c.out_channels = c.groups * numbers.between(1, 70);
    c.special = seed % 8 == 0;
    check_case(c, seed);
  }
}

TEST_CASE("conv_bf16 agrees with plain sums on layers of real networks") {
  const auto square = [](int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
    return Window{.height = size,
                  .width = size,
                  .kernel_height = kernel,
                  .kernel_width = kernel,
                  .stride_height = stride,
                  .stride_width = stride,
                  .pad_height = pad,
                  .pad_width = pad};
  };
  check_case({square(7, 3, 1, 1), 256, 33, 1, {Activation::relu}, ResidualPlace::before_activation}, 1);
  check_case({square(14, 3, 2, 1), 64, 64, 1, {Activation::relu}}, 2);
  check_case({square(29, 7, 2, 3), 3, 64, 1, {Activation::relu}}, 3);
  check_case({square(28, 1, 2, 0), 64, 32}, 4);
  check_case({square(32, 16, 16, 0), 3, 48}, 5);
  check_case({square(70, 3, 1, 1), 96, 8, 1, {Activation::gelu}}, 6);  // several chunks of lines
  check_case({{.height = 1, .width = 90, .kernel_width = 9, .pad_width = 4}, 32, 40}, 7);
  check_case({{.height = 1, .width = 300, .kernel_width = 80, .stride_width = 4}, 32, 40}, 8);
}

TEST_CASE("conv_bf16 agrees with plain sums where x comes in planes") {
  TestNumbers numbers(8);
  for (uint64_t seed = 300; seed < 340; ++seed) {
    Case c = draw_case(numbers);
    c.groups = 1, c.planes = static_cast<int>(seed % 2) + 1;
    c.in_channels = seed % 3 == 0 ? 3 : numbers.between(1, 31), c.out_channels = numbers.between(1, 40);
    c.special = seed % 8 == 0;
    check_case(c, seed);
  }
  // Several bands of lines.
  Case wide = {{.batch = 2,
                .height = 60,
                .width = 500,
                .kernel_height = 7,
                .kernel_width = 7,
                .stride_height = 2,
                .stride_width = 2,
                .pad_height = 3,
                .pad_width = 3},
               3,
               33,
               1,
               {Activation::relu}};
  for (const int planes : {1, 2}) {
    wide.planes = planes;
    check_case(wide, 7);
  }
}

TEST_CASE("conv_bf16 agrees with plain sums when transposed") {
  TestNumbers numbers(7);
  for (uint64_t seed = 200; seed < 240; ++seed) {
    Case c = draw_case(numbers);
    Window& w = c.window;
    w.kernel_height = numbers.between(1, 5), w.kernel_width = numbers.between(1, 5);
    w.pad_height = numbers.between(0, w.kernel_height - 1), w.pad_width = numbers.between(0, w.kernel_width - 1);
    w.dilation_height = numbers.between(1, 3), w.dilation_width = numbers.between(1, 3);
    c.groups = seed % 3 == 0 ? numbers.between(2, 3) : 1, c.transposed = true;
    c.in_channels = c.groups * (seed % 2 == 0 ? 32 : numbers.between(1, 40));
    c.out_channels = c.groups * (seed % 4 == 0 ? 16 : numbers.between(1, 40));
    c.special = seed % 8 == 0;
    check_case(c, seed);
  }
}

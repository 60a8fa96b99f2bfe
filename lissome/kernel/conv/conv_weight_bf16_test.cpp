// Every row of "conv_weight_bf16" against sums over the window as conv_gradient.h states them, also where lines are odd
// and numbers infinite; and every row of "pack_conv_bf16".
#include <doctest/doctest.h>

#include "lissome/kernel/conv/conv_bf16.h"
#include "lissome/kernel/conv/conv_gradient.h"
#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/isa/bf16_arrays.h"
#include "lissome/kernel/kernel_table.h"

using namespace lissome;

namespace {

struct Case {
  Window window;
  int64_t in_channels, out_channels, groups = 1;
};

std::vector<float> find_sums(const ConvWeightBf16Call& call) {
  const Window& w = call.window;
  const int64_t taps = w.kernel_height * w.kernel_width;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  std::vector<double> sums(static_cast<size_t>(call.out_channels * inputs * taps));
  for (int64_t row = 0; row < w.batch * w.out_height * w.out_width; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t h = oh * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
      const int64_t v = ow * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
      if (h < 0 || h >= w.height || v < 0 || v >= w.width) continue;
      for (int64_t oc = 0; oc < call.out_channels; ++oc) {
        for (int64_t ic = 0; ic < inputs; ++ic) {
          const int64_t x = ((n * w.height + h) * w.width + v) * call.in_channels + oc / outputs * inputs + ic;
          sums[static_cast<size_t>((oc * inputs + ic) * taps + tap)] +=
              static_cast<double>(widen_bf16(call.dy[row * call.out_channels + oc])) * widen_bf16(call.x[x]);
        }
      }
    }
  }
  return {sums.begin(), sums.end()};
}

void check_case(const Case& c, uint64_t seed, bool special = false) {
  const Window w = finish_window(c.window);
  REQUIRE(w.out_height > 0);
  REQUIRE(w.out_width > 0);
  CAPTURE(seed);
  TestNumbers numbers(seed);
  auto x = make_bf16(numbers, w.batch * w.height * w.width * c.in_channels);
  const auto dy = make_bf16(numbers, w.batch * w.out_height * w.out_width * c.out_channels);
  if (special) x[x.size() / 2] = 0x7f80, x[x.size() / 3] = 0xff80, x[x.size() - 1] = 0x7fc0;
  ConvWeightBf16Call call;
  call.x = x.data(), call.dy = dy.data();
  call.in_channels = c.in_channels, call.out_channels = c.out_channels, call.groups = c.groups, call.window = w;
  call.splits = choose_conv_weight_splits(c.out_channels, c.in_channels, c.groups, w.kernel_height * w.kernel_width);
  const std::vector<float> wanted = find_sums(call);
  std::vector<float> dw(static_cast<size_t>(call.splits) * wanted.size()), whole;
  call.dw = dw.data();
  const float tolerance = 1e-6f * std::sqrt(static_cast<float>(w.batch * w.out_height * w.out_width)) + 2e-6f;
  for (const KernelRow& row : kernel_rows("conv_weight_bf16")) {
    if (!can_run(row.isa)) continue;
    for (const int parts : {1, 3}) {
      std::vector<float> scratch(static_cast<size_t>(parts * conv_weight_scratch(call)), NAN);
      call.scratch = scratch.data();
      CAPTURE(isa_name(row.isa));
      std::fill(dw.begin(), dw.end(), 777.0f);
      for (int part = 0; part < parts; ++part) row.function(&call, part, parts);
      if (parts == 1) whole = dw;
      CHECK(count_differences(dw, whole, 0) == 0);
      std::vector<float> total(wanted.size(), 0.0f);
      for (size_t i = 0; i < dw.size(); ++i) total[i % total.size()] += dw[i];
      CHECK(count_differences(total, wanted, tolerance) == 0);
    }
  }
}

Case draw_case(TestNumbers& numbers, bool dilated) {
  Case c;
  Window& w = c.window;
  w.batch = numbers.between(1, 3), w.height = numbers.between(5, 12), w.width = numbers.between(5, 12);
  w.kernel_height = numbers.between(1, 3), w.kernel_width = numbers.between(1, 3);
  w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
  w.pad_height = numbers.between(0, 2), w.pad_width = numbers.between(0, 2);
  if (dilated) w.dilation_height = numbers.between(1, 2), w.dilation_width = numbers.between(1, 2);
  c.groups = numbers.between(1, 3);
  c.in_channels = c.groups * numbers.between(1, 40), c.out_channels = c.groups * numbers.between(1, 70);
  return c;
}

// Every row of "pack_conv_bf16", of bf16 and of f32 weights, against one part of the portable one.
void check_packing(ConvBf16Call conv, uint64_t seed) {
  CAPTURE(seed);
  TestNumbers numbers(seed);
  const int64_t taps = conv.window.kernel_height * conv.window.kernel_width;
  const auto wide = numbers.reals(conv.in_channels / conv.groups * conv.out_channels * taps);
  std::vector<uint16_t> rounded;
  for (const float value : wide) rounded.push_back(narrow_bf16(value));
  std::vector<uint16_t> wanted(static_cast<size_t>(packed_conv_bf16_size(conv)), 1);
  pack_conv_bf16(conv, rounded.data(), wanted.data());
  PackConvBf16Call pack;
  pack.in_channels = conv.in_channels, pack.out_channels = conv.out_channels, pack.groups = conv.groups;
  pack.transposed = conv.transposed, pack.window = conv.window;
  for (const KernelRow& row : kernel_rows("pack_conv_bf16")) {
    if (!can_run(row.isa)) continue;
    CAPTURE(isa_name(row.isa));
    for (const bool from_wide : {false, true}) {
      std::vector<uint16_t> packed(wanted.size(), 2);
      pack.weight = from_wide ? nullptr : rounded.data(), pack.wide_weight = wide.data(), pack.packed = packed.data();
      for (int part = 0; part < 3; ++part) row.function(&pack, part, 3);
      CHECK(packed == wanted);
    }
  }
}

}  // namespace

TEST_CASE("weight gradients in bf16 agree with their definition over windows, strides, dilations and groups") {
  TestNumbers numbers(5);
  for (uint64_t seed = 10; seed < 70; ++seed) check_case(draw_case(numbers, seed % 2 == 0), seed, seed % 5 == 0);
}

TEST_CASE("weight gradients in bf16 agree with their definition on the layers of networks") {
  check_case({square(2, 14, 3, 1), 64, 64}, 1);
  check_case({square(2, 14, 3, 2), 48, 130}, 2);
  check_case({square(2, 15, 1, 2), 70, 65}, 3);
  check_case({square(1, 30, 7, 2), 3, 64}, 4);
  check_case({square(2, 28, 3, 1), 1, 32}, 5);
  check_case({square(9, 7, 3, 1), 40, 72}, 6);
  check_case({square(1, 33, 3, 1), 20, 8}, 7);
  check_case({{.batch = 3, .width = 500, .kernel_width = 5, .stride_width = 2, .pad_width = 2}, 6, 10}, 8);
  check_case({{.batch = 2, .height = 1, .width = 1}, 30, 20}, 9);
}

TEST_CASE("weights of f32 are rounded and packed as bf16 ones are, whatever the number of parts") {
  TestNumbers numbers(6);
  for (uint64_t seed = 10; seed < 90; ++seed) {
    const Case c = draw_case(numbers, false);
    ConvBf16Call conv;
    conv.transposed = seed % 2 == 0;
    conv.groups = conv.transposed ? 1 : c.groups;
    conv.in_channels = c.in_channels, conv.out_channels = c.out_channels, conv.window = c.window;
    if (seed >= 40) {  // whole steps of inputs, and of outputs
      conv.in_channels = conv.groups * 32 * numbers.between(1, 3);
      if (conv.transposed) conv.out_channels = 16 * numbers.between(1, 5);
    }
    check_packing(conv, seed);
  }
}

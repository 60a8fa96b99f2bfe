// Every row of the int8 convolution of small groups against the portable one, and that one against the kernel of
// convolutions.
#include "lissome/kernel/depthwise/grouped_u8s8.h"

#include <doctest/doctest.h>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/test_u8s8.h"

using namespace lissome;

namespace {

constexpr int64_t kGroups[] = {2, 4, 8, 16, 32};

Window draw_window(TestNumbers& numbers) {
  Window w;
  w.batch = numbers.between(1, 2), w.height = numbers.between(4, 10), w.width = numbers.between(4, 30);
  w.kernel_height = numbers.between(1, 4), w.kernel_width = numbers.between(1, 4);
  w.stride_height = numbers.between(1, 2), w.stride_width = numbers.between(1, 2);
  // Every pixel reads some of x: those that read its border alone lie on few numbers, and in masses between two bytes.
  w.pad_height = numbers.between(w.kernel_height / 2, w.kernel_height - 1);
  w.pad_width = numbers.between(w.kernel_width / 2, w.kernel_width - 1);
  w.dilation_height = w.kernel_height < 3 ? numbers.between(1, 2) : 1;
  w.dilation_width = w.kernel_width < 3 ? numbers.between(1, 2) : 1;
  return finish_window(w);
}

// The operands of a call, kept alive for it.
struct Operands {
  Bytes bytes;
  Surroundings around;
  std::vector<int8_t> packed;
  std::vector<int32_t> sums;
  GroupedU8S8Call call;

  Operands(TestNumbers& numbers, const Window& w, int64_t group, int64_t groups)
      : bytes(make_bytes(numbers, w.batch * w.height * w.width * group * groups,
                         group * group * groups * w.kernel_height * w.kernel_width)),
        around(numbers, w.batch * w.out_height * w.out_width, group * groups),
        packed(static_cast<size_t>(packed_grouped_u8s8_size(group * groups, group, w))),
        sums(static_cast<size_t>(group * groups)) {
    call.channels = group * groups, call.group = group, call.window = w;
    pack();
    call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data();
    around.fill(numbers, call, call.channels, false);
  }
  void pack() {
    pack_grouped_u8s8(bytes.weight.data(), call.channels, call.group, call.window, packed.data(), sums.data());
  }
  int64_t results() const {
    const Window& w = call.window;
    return w.batch * w.out_height * w.out_width * call.channels;
  }
};

}  // namespace

TEST_CASE("grouped_u8s8 gives the bits of the portable form") {
  TestNumbers numbers(41);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const int64_t group : kGroups) {
      const Window w = draw_window(numbers);
      REQUIRE(takes_grouped_u8s8(group, group, w));
      const Operands operands(numbers, w, group, numbers.between(1, 110 / group));
      check_rows("grouped_u8s8", operands.call, operands.results(), seed);
    }
  }
}

TEST_CASE("grouped_u8s8 gives what conv_u8s8 gives") {
  TestNumbers numbers(43);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Window w = draw_window(numbers);
    const int64_t group = kGroups[seed % 5], groups = numbers.between(1, 5), channels = group * groups;
    Operands operands(numbers, w, group, groups);
    operands.call.epilogue = {};
    const RunsU8S8 runs = choose_runs(w, groups);
    const int64_t block = packed_u8s8_size(group, group, runs);
    std::vector<int8_t> packed(static_cast<size_t>(groups * block));
    std::vector<int32_t> sums(static_cast<size_t>(channels));
    for (int64_t g = 0; g < groups; ++g) {
      pack_u8s8(operands.bytes.weight.data() + g * group * group * runs.taps, group, group, runs,
                packed.data() + g * block, sums.data() + g * group);
    }
    CHECK(sums == operands.sums);
    ConvU8S8Call conv;
    static_cast<OutputU8S8&>(conv) = operands.call;
    const std::vector<uint8_t> border(static_cast<size_t>(channels), static_cast<uint8_t>(operands.call.x_zero));
    conv.x = operands.call.x, conv.weight = packed.data(), conv.border = border.data();
    conv.in_channels = conv.out_channels = channels, conv.groups = groups, conv.window = w;
    CHECK(run_row(kernel_rows("grouped_u8s8").back(), operands.call, operands.results(), 1) ==
          run_row(kernel_rows("conv_u8s8").back(), conv, operands.results(), 1));
  }
}

TEST_CASE("grouped_u8s8 stops at the ends of a byte and does not saturate before") {
  TestNumbers numbers(44);
  Window w;
  w.height = w.width = 9, w.kernel_height = w.kernel_width = 3, w.pad_height = w.pad_width = 1;
  for (const int64_t group : kGroups) {
    Operands operands(numbers, finish_window(w), group, 96 / group);
    std::fill(operands.bytes.x.begin(), operands.bytes.x.end(), uint8_t{255});
    std::fill(operands.bytes.weight.begin(), operands.bytes.weight.end(), int8_t{-128});
    operands.pack();
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const float special[] = {nan, infinity, -infinity, 3e38f, -3e38f, 1e-4f, -1e-4f};
    for (size_t c = 0; c < 96; ++c) operands.around.multiplier[c] = special[c % 7];
    operands.call.out_inverse = 3.0f, operands.call.out_zero = 17, operands.call.narrows = false;
    for (const Activation activation : {Activation::none, Activation::relu, Activation::clamp}) {
      operands.call.epilogue = {activation, -2.0f, 6.0f};
      check_rows("grouped_u8s8", operands.call, operands.results(), 44);
    }
  }
}

TEST_CASE("grouped_u8s8 takes groups of powers of two and windows that fit its scratch") {
  Window w;
  w.kernel_height = w.kernel_width = 3;
  for (const int64_t group : {1, 3, 6, 64}) CHECK_FALSE(takes_grouped_u8s8(group, group, w));
  CHECK_FALSE(takes_grouped_u8s8(8, 16, w));
  w.kernel_height = 17;
  CHECK_FALSE(takes_grouped_u8s8(8, 8, w));
  w.kernel_height = 3, w.dilation_width = 100;
  CHECK_FALSE(takes_grouped_u8s8(8, 8, w));
}

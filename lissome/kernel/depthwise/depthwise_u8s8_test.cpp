// Every row of the int8 depthwise convolution against the portable one, and that one against the kernel of
// convolutions.
#include "lissome/kernel/depthwise/depthwise_u8s8.h"

#include <doctest/doctest.h>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/test_u8s8.h"

using namespace lissome;

namespace {

Window draw_window(TestNumbers& numbers) {
  Window w;
  w.batch = numbers.between(1, 2), w.height = numbers.between(5, 12), w.width = numbers.between(5, 40);
  w.kernel_height = numbers.between(1, 9), w.kernel_width = numbers.between(1, 7);
  w.stride_height = numbers.between(1, 3), w.stride_width = numbers.between(1, 3);
  // Every pixel reads some of x: those that read its border alone lie on few numbers, and in masses between two bytes.
  w.pad_height = numbers.between(w.kernel_height / 2, w.kernel_height - 1);
  w.pad_width = numbers.between(w.kernel_width / 2, w.kernel_width - 1);
  w.dilation_height = w.kernel_height < 4 ? numbers.between(1, 2) : 1;
  w.dilation_width = w.kernel_width < 4 ? numbers.between(1, 2) : 1;
  return finish_window(w);
}

// The operands of a call, kept alive for it.
struct Operands {
  Bytes bytes;
  Surroundings around;
  std::vector<int8_t> packed;
  std::vector<int32_t> sums;
  DepthwiseU8S8Call call;

  Operands(TestNumbers& numbers, const Window& w, int64_t channels)
      : bytes(
            make_bytes(numbers, w.batch * w.height * w.width * channels, channels * w.kernel_height * w.kernel_width)),
        around(numbers, w.batch * w.out_height * w.out_width, channels),
        packed(static_cast<size_t>(packed_depthwise_u8s8_size(channels, w))),
        sums(static_cast<size_t>(channels)) {
    pack_depthwise_u8s8(bytes.weight.data(), channels, w, packed.data(), sums.data());
    call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data();
    call.channels = channels, call.window = w;
    around.fill(numbers, call, channels, false);
  }
  int64_t results() const {
    const Window& w = call.window;
    return w.batch * w.out_height * w.out_width * call.channels;
  }
};

}  // namespace

TEST_CASE("depthwise_u8s8 gives the bits of the portable form") {
  TestNumbers numbers(31);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Window w = draw_window(numbers);
    REQUIRE(takes_depthwise_u8s8(w));
    const Operands operands(numbers, w, numbers.between(1, 110));
    check_rows("depthwise_u8s8", operands.call, operands.results(), seed);
  }
}

TEST_CASE("depthwise_u8s8 over lines of several strips") {
  TestNumbers numbers(32);
  Window w;
  w.height = 9, w.width = 301, w.kernel_height = 5, w.kernel_width = 5, w.pad_height = w.pad_width = 2;
  const Operands single(numbers, finish_window(w), 70);
  check_rows("depthwise_u8s8", single.call, single.results(), 1);
  w.stride_height = w.stride_width = 2, w.dilation_width = 11;
  const Operands dilated(numbers, finish_window(w), 70);
  check_rows("depthwise_u8s8", dilated.call, dilated.results(), 2);
  w.kernel_width = 63;
  CHECK_FALSE(takes_depthwise_u8s8(w));
}

TEST_CASE("depthwise_u8s8 gives what conv_u8s8 gives with a group for each channel") {
  TestNumbers numbers(33);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Window w = draw_window(numbers);
    const int64_t channels = numbers.between(1, 40);
    Operands operands(numbers, w, channels);
    operands.call.epilogue = {};
    const RunsU8S8 runs = choose_runs(w, channels);
    const int64_t block = packed_u8s8_size(1, 1, runs);
    std::vector<int8_t> packed(static_cast<size_t>(channels * block));
    std::vector<int32_t> sums(static_cast<size_t>(channels));
    for (int64_t c = 0; c < channels; ++c) {
      pack_u8s8(operands.bytes.weight.data() + c * runs.taps, 1, 1, runs, packed.data() + c * block, sums.data() + c);
    }
    CHECK(sums == operands.sums);
    ConvU8S8Call conv;
    static_cast<OutputU8S8&>(conv) = operands.call;
    const std::vector<uint8_t> border(static_cast<size_t>(channels), static_cast<uint8_t>(operands.call.x_zero));
    conv.x = operands.call.x, conv.weight = packed.data(), conv.border = border.data();
    conv.in_channels = conv.out_channels = conv.groups = channels, conv.window = w;
    CHECK(run_row(kernel_rows("depthwise_u8s8").back(), operands.call, operands.results(), 1) ==
          run_row(kernel_rows("conv_u8s8").back(), conv, operands.results(), 1));
  }
}

TEST_CASE("depthwise_u8s8 stops at the ends of a byte and does not saturate before") {
  TestNumbers numbers(34);
  Window w;
  w.height = w.width = 9, w.kernel_height = w.kernel_width = 7, w.pad_height = w.pad_width = 3;
  Operands operands(numbers, finish_window(w), 67);
  std::fill(operands.bytes.x.begin(), operands.bytes.x.end(), uint8_t{255});
  std::fill(operands.bytes.weight.begin(), operands.bytes.weight.end(), int8_t{-128});
  pack_depthwise_u8s8(operands.bytes.weight.data(), 67, operands.call.window, operands.packed.data(),
                      operands.sums.data());
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {nan, infinity, -infinity, 3e38f, -3e38f, 1e-4f, -1e-4f};
  for (size_t c = 0; c < 67; ++c) operands.around.multiplier[c] = special[c % 7];
  operands.call.out_inverse = 3.0f, operands.call.out_zero = 17;
  for (const Activation activation : {Activation::none, Activation::relu, Activation::clamp}) {
    operands.call.epilogue = {activation, -2.0f, 6.0f};
    check_rows("depthwise_u8s8", operands.call, operands.results(), 34);
  }
}

// Every row of the int8 depthwise convolution against the portable one, and that one against the kernel of
// convolutions.
#include "lissome/kernel/depthwise/depthwise_u8s8.h"

#include <doctest/doctest.h>

#include "lissome/kernel/depthwise/test_windows_u8s8.h"

using namespace lissome;

namespace {

struct Operands : WindowOperands<DepthwiseU8S8Call> {
  Operands(TestNumbers& numbers, const Window& w, int64_t channels)
      : WindowOperands(numbers, w, channels, 1, packed_depthwise_u8s8_size(channels, w)) {
    pack();
  }
  void pack() { pack_depthwise_u8s8(bytes.weight.data(), call.channels, call.window, packed.data(), sums.data()); }
};

}  // namespace

TEST_CASE("depthwise_u8s8 gives the bits of the portable form") {
  TestNumbers numbers(31);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Window w = draw_window_u8s8(numbers);
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
    const Window w = draw_window_u8s8(numbers);
    const int64_t channels = numbers.between(1, 40);
    Operands operands(numbers, w, channels);
    operands.call.epilogue = {};
    const std::vector<float> wanted = run_as_conv(operands, channels);
    CHECK(run_row(kernel_rows("depthwise_u8s8").back(), operands.call, operands.results(), 1) == wanted);
  }
}

TEST_CASE("depthwise_u8s8 stops at the ends of a byte and does not saturate before") {
  TestNumbers numbers(34);
  Window w;
  w.height = w.width = 9, w.kernel_height = w.kernel_width = 7, w.pad_height = w.pad_width = 3;
  Operands operands(numbers, finish_window(w), 67);
  operands.take_extremes();
  operands.pack();
  for (const Activation activation : {Activation::none, Activation::relu, Activation::clamp}) {
    operands.call.epilogue = {activation, -2.0f, 6.0f};
    check_rows("depthwise_u8s8", operands.call, operands.results(), 34);
  }
}

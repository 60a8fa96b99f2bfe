// Every row of the int8 convolution of small groups against the portable one, and that one against the kernel of
// convolutions.
#include "lissome/kernel/depthwise/grouped_u8s8.h"

#include <doctest/doctest.h>

#include "lissome/kernel/depthwise/test_windows_u8s8.h"

using namespace lissome;

namespace {

constexpr int64_t kGroups[] = {2, 4, 8, 16, 32};

struct Operands : WindowOperands<GroupedU8S8Call> {
  Operands(TestNumbers& numbers, const Window& w, int64_t group, int64_t groups)
      : WindowOperands(numbers, w, group * groups, group, packed_grouped_u8s8_size(group * groups, group, w)) {
    call.group = group;
    pack();
  }
  void pack() {
    pack_grouped_u8s8(bytes.weight.data(), call.channels, call.group, call.window, packed.data(), sums.data());
  }
};

}  // namespace

TEST_CASE("grouped_u8s8 gives the bits of the portable form") {
  TestNumbers numbers(41);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const int64_t group : kGroups) {
      const Window w = draw_window_u8s8(numbers);
      REQUIRE(takes_grouped_u8s8(group, group, w));
      const Operands operands(numbers, w, group, numbers.between(1, 110 / group));
      check_rows("grouped_u8s8", operands.call, operands.results(), seed);
    }
  }
}

TEST_CASE("grouped_u8s8 gives what conv_u8s8 gives") {
  TestNumbers numbers(43);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Window w = draw_window_u8s8(numbers);
    const int64_t group = kGroups[seed % 5], groups = numbers.between(1, 5);
    Operands operands(numbers, w, group, groups);
    operands.call.epilogue = {};
    const std::vector<float> wanted = run_as_conv(operands, groups);
    CHECK(run_row(kernel_rows("grouped_u8s8").back(), operands.call, operands.results(), 1) == wanted);
  }
}

TEST_CASE("grouped_u8s8 stops at the ends of a byte and does not saturate before") {
  TestNumbers numbers(44);
  Window w;
  w.height = w.width = 9, w.kernel_height = w.kernel_width = 3, w.pad_height = w.pad_width = 1;
  for (const int64_t group : kGroups) {
    Operands operands(numbers, finish_window(w), group, 96 / group);
    operands.take_extremes();
    operands.pack();
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

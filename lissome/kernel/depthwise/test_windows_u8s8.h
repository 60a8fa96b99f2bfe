// Operands of the int8 convolutions whose channels each read few others, and what the kernel of plain convolutions
// makes of them.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "lissome/kernel/conv/test_window.h"
#include "lissome/kernel/gemm/test_u8s8.h"

namespace lissome {

inline Window draw_window_u8s8(TestNumbers& numbers) {
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

// The operands of a call, kept alive for it; its weight is still to be packed.
template <typename Call>
struct WindowOperands {
  Bytes bytes;
  Surroundings around;
  std::vector<int8_t> packed;
  std::vector<int32_t> sums;
  Call call;

  // `inputs`: channels of x that each of y reads.
  WindowOperands(TestNumbers& numbers, const Window& w, int64_t channels, int64_t inputs, int64_t packed_size)
      : bytes(make_bytes(numbers, w.batch * w.height * w.width * channels,
                         channels * inputs * w.kernel_height * w.kernel_width)),
        around(numbers, w.batch * w.out_height * w.out_width, channels),
        packed(static_cast<size_t>(packed_size)),
        sums(static_cast<size_t>(channels)) {
    call.x = bytes.x.data(), call.weight = packed.data(), call.weight_sums = sums.data();
    call.channels = channels, call.window = w;
    around.fill(numbers, call, channels, false);
  }
  int64_t results() const {
    const Window& w = call.window;
    return w.batch * w.out_height * w.out_width * call.channels;
  }

  // The largest numbers, and multipliers that leave every range; bytes come out.
  void take_extremes() {
    std::fill(bytes.x.begin(), bytes.x.end(), uint8_t{255});
    std::fill(bytes.weight.begin(), bytes.weight.end(), int8_t{-128});
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    const float special[] = {nan, infinity, -infinity, 3e38f, -3e38f, 1e-4f, -1e-4f};
    for (size_t c = 0; c < around.multiplier.size(); ++c) around.multiplier[c] = special[c % 7];
    call.out_inverse = 3.0f, call.out_zero = 17, call.narrows = false;
  }
};

// Of the same operands by conv_u8s8, whose sums of weights must be theirs.
template <typename Call>
std::vector<float> run_as_conv(const WindowOperands<Call>& operands, int64_t groups) {
  const Window& w = operands.call.window;
  const int64_t channels = operands.call.channels, group = channels / groups;
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
  return run_row(kernel_rows("conv_u8s8").back(), conv, operands.results(), 1);
}

}  // namespace lissome

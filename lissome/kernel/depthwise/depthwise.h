// Depthwise 2-D convolution of channels-last values: every channel with a window of its own. In f32, or in bf16 with
// sums and weights in f32. The grouped ones sum the windows of some neighbouring channels: as many channels of y as of
// x in each group.
// Packed weight: [kh * kw][inputs of a channel: one, or the group's][channels]; of grouped_bf16, whose weights are
// bf16, [kh * kw][group / 2][channels][2].
#pragma once

#include "lissome/kernel/conv/conv_f32.h"
#include "lissome/kernel/gemm/linear_bf16.h"

namespace lissome {

template <typename Output, typename T, typename Weight = float>
struct DepthwiseCallOf : Output {
  const T* x = nullptr;            // [batch, height, width, channels]
  const Weight* weight = nullptr;  // packed
  int64_t channels = 0;
  int64_t group = 1;  // channels of each group; a power of two up to kMostGroup. One but for the grouped kernels
  Window window;
};
using DepthwiseF32Call = DepthwiseCallOf<OutputF32, float>;
using DepthwiseBf16Call = DepthwiseCallOf<OutputBf16, uint16_t>;
using GroupedBf16Call = DepthwiseCallOf<OutputBf16, uint16_t, uint16_t>;

// `weight` is [channels, group, kh, kw].
void pack_depthwise(const float* weight, int64_t channels, int64_t group, int64_t taps, float* packed);
void pack_grouped_bf16(const uint16_t* weight, int64_t channels, int64_t group, int64_t taps, uint16_t* packed);

// Wider groups fill the panels of conv_f32.
inline constexpr int64_t kMostGroup = 16;
// Whether the grouped kernels take groups of so many inputs and outputs.
constexpr bool takes_group(int64_t inputs, int64_t outputs) {
  return inputs == outputs && inputs >= 2 && inputs <= kMostGroup && (inputs & (inputs - 1)) == 0;
}

}  // namespace lissome

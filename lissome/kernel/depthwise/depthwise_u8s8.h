// Depthwise convolution of u8 activations and s8 weights, channels-last: every channel with a window of its own. Sums,
// zero points and results are those of linear_u8s8.h; outside of x lies x_zero.
//
// Packed weight: panels of 32 channels, filled up with zeros. The rows of the window come in fours, filled up too:
//   packed[c / 32][kh / 4][kw][c % 32][kh % 4]
#pragma once

#include "lissome/kernel/gemm/linear_u8s8.h"

namespace lissome {

struct DepthwiseU8S8Call : OutputU8S8 {
  const uint8_t* x = nullptr;      // [batch, height, width, channels]
  const int8_t* weight = nullptr;  // packed
  int64_t channels = 0;
  Window window;
};

// Whether the kernel takes this window: what one pixel reads must fit its scratch.
bool takes_depthwise_u8s8(const Window& window);

int64_t packed_depthwise_u8s8_size(int64_t channels, const Window& window);  // bytes
// `weight` is [channels, 1, kernel_height, kernel_width]. Also fills weight_sums[channels].
void pack_depthwise_u8s8(const int8_t* weight, int64_t channels, const Window& window, int8_t* packed,
                         int32_t* weight_sums);

}  // namespace lissome

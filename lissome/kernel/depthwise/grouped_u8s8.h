// Convolution of small groups of u8 activations and s8 weights, channels-last: each channel of y reads the channels of
// x of its group, of which there are as many. Sums, zero points and results are those of linear_u8s8.h; outside of x
// lies x_zero.
//
// Packed weight: panels of 32 channels, filled up with zeros. Inputs come in fours; a group of two is half a four, the
// other half of which meets zeros:
//   packed[c / 32][kh][kw][four of the group][c % 32][k % 4]
#pragma once

#include "lissome/kernel/gemm/linear_u8s8.h"

namespace lissome {

struct GroupedU8S8Call : OutputU8S8 {
  const uint8_t* x = nullptr;      // [batch, height, width, channels]
  const int8_t* weight = nullptr;  // packed
  int64_t channels = 0, group = 2;
  Window window;
};

// Whether the kernel takes groups of so many channels, of x and of y, and this window: what a tile reads must fit its
// scratch.
bool takes_grouped_u8s8(int64_t inputs, int64_t outputs, const Window& window);

int64_t packed_grouped_u8s8_size(int64_t channels, int64_t group, const Window& window);  // bytes
// `weight` is [channels, group, kernel_height, kernel_width]. Also fills weight_sums[channels].
void pack_grouped_u8s8(const int8_t* weight, int64_t channels, int64_t group, const Window& window, int8_t* packed,
                       int32_t* weight_sums);

}  // namespace lissome

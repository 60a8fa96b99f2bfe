// The 3x3 convolution of stride 1 over bytes with 2.25 times fewer multiplications: F(2x2, 3x3) of Lavin & Gray, "Fast
// Algorithms for Convolutional Neural Networks" (2015), in whole numbers. The transform of the weights is taken twice
// as large in both dimensions, so that it holds no halves, and the sums are four times those of the direct form: they
// are divided without a rest, and the results have the bits of conv_u8s8 (linear_u8s8.h).
//
// Transformed inputs lie within 4 * 255, transformed weights within 9 * 128: products of 16-bit numbers, which is what
// processors without VNNI multiply fastest. Sums may wrap on the way; four times the result fits 32 bits up to
// kMostWinogradInputs channels.
//
// Packed weight: [out_channels / 16][16 points][in_channels / 2][16 outputs][2 inputs], s16.
#pragma once

#include "lissome/kernel/linear_u8s8.h"
#include "lissome/kernel/winograd_f32.h"

namespace lissome {

inline constexpr int64_t kWinogradBytes = 16;         // inputs and outputs are multiples of this
inline constexpr int64_t kMostWinogradInputs = 1824;  // 4 * 9 * 255 * 128 * this < 2^31

struct WinogradU8S8Call : OutputU8S8, WinogradShape {  // tile is 2
  const uint8_t* x = nullptr;                          // [batch, height, width, in_channels]
  const uint8_t* zeros = nullptr;                      // in_channels times x_zero
  const int16_t* weight = nullptr;                     // packed
  std::byte* scratch = nullptr;                        // winograd_u8s8_scratch() for each part, aligned to 64
};

int64_t packed_winograd_u8s8_size(int64_t out_channels, int64_t in_channels);  // elements
// `weight` is [out_channels, in_channels, 3, 3], dense in row order. Also fills weight_sums[out_channels].
void pack_winograd_u8s8(const int8_t* weight, int64_t out_channels, int64_t in_channels, int16_t* packed,
                        int32_t* weight_sums);

// Sets `block` and `split_outputs` for this many parts. The rest of the shape is set already.
void choose_winograd_u8s8_blocks(WinogradShape& shape, int parts);
int64_t winograd_u8s8_scratch(const WinogradShape& shape);  // bytes, of one part

}  // namespace lissome

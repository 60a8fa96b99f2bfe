// The 3x3 convolution of stride 1 over bytes with four times fewer multiplications: F(4x4, 3x3) of Lavin & Gray, "Fast
// Algorithms for Convolutional Neural Networks" (2015), in whole numbers modulo 2^32, with the bits of conv_u8s8
// (linear_u8s8.h).
//
// The rows of the transform of the weights are taken 24 or 6 times as large in both dimensions, so that they hold no
// fractions. Transformed inputs then lie within 68 * 255, transformed weights within 49 * 128: numbers of 16 bits,
// whose pairs of products fit 32. Sums wrap. What the transform of the sums leaves is 9 * 2^n times the sum of the
// direct form, n from 2 to 6 by the place in the tile: 9 is odd and has an inverse modulo 2^32, and a shift by n brings
// back the sum from its 26 lowest bits. It must fit those: fits_winograd_u8s8().
//
// Packed weight: [out_channels / 16][36 points][in_channels / 2][16 outputs][2 inputs], s16.
#pragma once

#include "lissome/kernel/gemm/linear_u8s8.h"
#include "lissome/kernel/winograd/winograd_f32.h"

namespace lissome {

inline constexpr int64_t kWinogradBytes = 32;      // inputs and outputs are multiples of this
inline constexpr int64_t kWinogradBytePanel = 16;  // outputs of a packed panel
inline constexpr int kWinogradByteTile = 4;        // results of a tile, along each side
// The sum of output (i, j) of a tile from what the transform leaves: times this, shifted by [i] + [j].
inline constexpr int32_t kInverseOfNine = 954437177;
inline constexpr int kWinogradShifts[4] = {3, 2, 1, 1};

struct WinogradU8S8Call : OutputU8S8, WinogradShape {  // tile is 4
  const uint8_t* x = nullptr;                          // [batch, height, width, in_channels]
  const uint8_t* zeros = nullptr;                      // in_channels times x_zero
  const int16_t* weight = nullptr;                     // packed
  std::byte* scratch = nullptr;                        // winograd_u8s8_scratch() for each part, aligned to 64
};

// Whether every sum of x - x_zero times `weight`, [out_channels, in_channels, 3, 3], fits 26 bits, whatever x is.
bool fits_winograd_u8s8(const int8_t* weight, int64_t out_channels, int64_t in_channels);

int64_t packed_winograd_u8s8_size(int64_t out_channels, int64_t in_channels);  // elements
// `weight` is [out_channels, in_channels, 3, 3], dense in row order. Also fills weight_sums[out_channels].
void pack_winograd_u8s8(const int8_t* weight, int64_t out_channels, int64_t in_channels, int16_t* packed,
                        int32_t* weight_sums);

// Sets `block` and `split_outputs` for this many parts. The rest of the shape is set already.
void choose_winograd_u8s8_blocks(WinogradShape& shape, int parts);
int64_t winograd_u8s8_scratch(const WinogradShape& shape);  // bytes, of one part

}  // namespace lissome

// The 3x3 convolution of stride 1 with fewer multiplications: F(2x2, 3x3) and F(4x4, 3x3) of Lavin & Gray, "Fast
// Algorithms for Convolutional Neural Networks" (2015). Tiles of (tile + 2)^2 inputs, overlapping by 2, are transformed
// (B^T d B), multiplied with the transformed weights (G g G^T) as (tile + 2)^2 matrix products over the channels, and
// transformed back (A^T m A) into tile^2 outputs: 4 or 2.25 multiplications of the direct form become one.
//
// The sums are others than those of the direct form: off by a few 1e-6 of the largest sum for tile 4, less for tile 2,
// and always below 1e-4. An infinity or NaN in x reaches every output of the tiles that read it.
//
// x and y are f32 or bf16; the weight, the transforms and the sums are f32 for both, so that bf16 loses nothing but the
// one rounding of y.
//
// Packed weight: panels of 64 outputs, each [(tile + 2)^2][in_channels][64], the last panel filled with zeros.
#pragma once

#include <cstdint>

#include "lissome/kernel/conv/conv_f32.h"
#include "lissome/kernel/gemm/linear_bf16.h"

namespace lissome {

struct WinogradShape {
  int64_t in_channels = 0, out_channels = 0;
  int64_t tile = 4;            // 2 or 4 outputs a side
  int64_t block = 0;           // tiles that are transformed and multiplied together
  bool split_outputs = false;  // parts share the outputs, each transforming all of x; else they share the tiles
  Window window;               // 3x3, stride and dilation 1
};

template <typename Output, typename Item>
struct WinogradCall : Output, WinogradShape {
  const Item* x = nullptr;        // [batch, height, width, in_channels]
  const Item* zeros = nullptr;    // in_channels zeros
  const float* weight = nullptr;  // packed, see above
  float* scratch = nullptr;       // winograd_scratch_size() for each part
};
using WinogradF32Call = WinogradCall<OutputF32, float>;
using WinogradBf16Call = WinogradCall<OutputBf16, uint16_t>;

int64_t packed_winograd_f32_size(int64_t out_channels, int64_t in_channels, int64_t tile);  // elements
// `weight` is [out_channels, in_channels, 3, 3], dense in row order. Computed in double.
void pack_winograd_f32(const float* weight, int64_t out_channels, int64_t in_channels, int64_t tile, float* packed);

// Sets `block` and `split_outputs` for this many parts. The rest of the shape is set already.
void choose_winograd_blocks(WinogradShape& shape, int parts);
int64_t winograd_scratch_size(const WinogradShape& shape);  // elements, of one part

}  // namespace lissome

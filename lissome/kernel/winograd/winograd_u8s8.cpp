// Packing, blocks, and the portable form.
#include "lissome/kernel/winograd/winograd_u8s8.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output_u8s8.h"
#include "lissome/kernel/winograd/kernel_versions.h"
#include "lissome/kernel/winograd/winograd_tiles.h"

namespace lissome {
namespace {

constexpr int kTile = kWinogradByteTile, kSide = kTile + 2, kPoints = kSide * kSide;
constexpr int64_t kPanel = kWinogradBytePanel;
// Transformed inputs and sums of a block stay in the second-level cache.
constexpr int64_t kTransformedBytes = 384 * 1024;
// Weights beyond this do not stay there beside them: each part then keeps its own share of the outputs.
constexpr int64_t kResidentWeightBytes = 1024 * 1024;

// The matrices of the paper; the rows of G times 24, 6, 6, 24, 24, 6, those of A^T so divided and multiplied that what
// they give is 24, 12, 6, 6 times the results.
constexpr int kWeightRows[kSide][3] = {{6, 0, 0}, {-1, -1, -1}, {-1, 1, -1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 6}};
constexpr int kInputRows[kSide][kSide] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                          {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
constexpr int kOutputRows[kTile][kSide] = {
    {1, 4, 4, 1, 1, 0}, {0, 2, -2, 1, -1, 0}, {0, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 1}};
constexpr int64_t kMostSum = (int64_t{1} << 25) - 1;  // of 26 bits

// left * from * left^T, modulo 2^32.
template <int Rows, int Columns>
void transform(const int (&left)[Rows][Columns], const uint32_t (&from)[Columns][Columns], uint32_t (&to)[Rows][Rows]) {
  uint32_t half[Rows][Columns] = {};
  for (int i = 0; i < Rows; ++i) {
    for (int k = 0; k < Columns; ++k) {
      for (int j = 0; j < Columns; ++j) half[i][j] += static_cast<uint32_t>(left[i][k]) * from[k][j];
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Rows; ++j) {
      to[i][j] = 0;
      for (int k = 0; k < Columns; ++k) to[i][j] += half[i][k] * static_cast<uint32_t>(left[j][k]);
    }
  }
}

int64_t weight_offset(int64_t in_channels, int64_t oc, int64_t ic, int64_t point) {
  const int64_t pair = (oc / kPanel * kPoints + point) * (in_channels / 2) + ic / 2;
  return (pair * kPanel + oc % kPanel) * 2 + ic % 2;
}

}  // namespace

bool fits_winograd_u8s8(const int8_t* weight, int64_t out_channels, int64_t in_channels) {
  const int64_t count = in_channels * 9;
  for (int64_t oc = 0; oc < out_channels; ++oc, weight += count) {
    int64_t up = 0, down = 0;
    for (int64_t i = 0; i < count; ++i) (weight[i] > 0 ? up : down) += std::abs(int{weight[i]});
    // x - x_zero spans 255: what its range has above 0 it has not below.
    if (255 * std::max(up, down) > kMostSum) return false;
  }
  return true;
}

int64_t packed_winograd_u8s8_size(int64_t out_channels, int64_t in_channels) {
  return kPoints * out_channels * in_channels;
}

void pack_winograd_u8s8(const int8_t* weight, int64_t out_channels, int64_t in_channels, int16_t* packed,
                        int32_t* weight_sums) {
  for (int64_t oc = 0; oc < out_channels; ++oc) {
    weight_sums[oc] = 0;
    for (int64_t ic = 0; ic < in_channels; ++ic) {
      const int8_t* from = weight + (oc * in_channels + ic) * 9;
      uint32_t window[3][3], points[kSide][kSide];
      for (int tap = 0; tap < 9; ++tap) {
        window[tap / 3][tap % 3] = static_cast<uint32_t>(int{from[tap]});
        weight_sums[oc] += from[tap];
      }
      transform(kWeightRows, window, points);
      for (int point = 0; point < kPoints; ++point) {
        packed[weight_offset(in_channels, oc, ic, point)] =
            static_cast<int16_t>(static_cast<int32_t>(points[point / kSide][point % kSide]));
      }
    }
  }
}

void choose_winograd_u8s8_blocks(WinogradShape& shape, int parts) {
  const int64_t weight_bytes = 2 * packed_winograd_u8s8_size(shape.out_channels, shape.in_channels);
  shape.split_outputs = shape.out_channels / kWinogradBytes >= parts && weight_bytes > kResidentWeightBytes;
  const int64_t tiles = count_tiles(shape.window, shape.tile).all();
  const int64_t mine = shape.split_outputs ? tiles : (tiles + parts - 1) / parts;
  const int64_t fitting =
      std::max<int64_t>(kTransformedBytes / (kPoints * (2 * shape.in_channels + 4 * kWinogradBytes)), 1);
  const int64_t blocks = std::max<int64_t>((mine + fitting - 1) / fitting, 1);
  shape.block = std::max<int64_t>((mine + blocks - 1) / blocks, 1);
}

int64_t winograd_u8s8_scratch(const WinogradShape& shape) {
  return kPoints * (2 * words_stride(shape) + 4 * sums_stride(shape));
}

void winograd_u8s8_portable(const WinogradU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  const TileCounts counts = count_tiles(w, kTile);
  const Range tiles = split_evenly(counts.all(), part, parts);
  std::vector<uint32_t> inputs(static_cast<size_t>(kPoints * call.in_channels));
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const TileCorner corner = find_corner(counts, kTile, tile);
    for (int64_t ic = 0; ic < call.in_channels; ++ic) {
      uint32_t window[kSide][kSide], points[kSide][kSide];
      for (int i = 0; i < kSide; ++i) {
        for (int j = 0; j < kSide; ++j) window[i][j] = find_input(call, corner, i, j)[ic];
      }
      transform(kInputRows, window, points);
      std::copy_n(&points[0][0], kPoints, inputs.begin() + ic * kPoints);
    }
    for (int64_t oc = 0; oc < call.out_channels; ++oc) {
      uint32_t sums[kSide][kSide] = {}, y[kTile][kTile];
      for (int point = 0; point < kPoints; ++point) {
        for (int64_t ic = 0; ic < call.in_channels; ++ic) {
          const int32_t weight = call.weight[weight_offset(call.in_channels, oc, ic, point)];
          sums[point / kSide][point % kSide] +=
              inputs[static_cast<size_t>(ic * kPoints + point)] * static_cast<uint32_t>(weight);
        }
      }
      transform(kOutputRows, sums, y);
      for (int64_t i = 0; i < std::min<int64_t>(kTile, w.out_height - corner.top); ++i) {
        for (int64_t j = 0; j < std::min<int64_t>(kTile, w.out_width - corner.left); ++j) {
          const int64_t row = (corner.image * w.out_height + corner.top + i) * w.out_width + corner.left + j;
          const auto sum = static_cast<int32_t>(y[i][j] * static_cast<uint32_t>(kInverseOfNine));
          finish_one(call, row, oc, static_cast<uint32_t>(sum >> (kWinogradShifts[i] + kWinogradShifts[j])));
        }
      }
    }
  }
}

}  // namespace lissome

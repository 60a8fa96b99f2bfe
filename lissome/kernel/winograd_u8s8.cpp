// Packing, blocks, and the portable form.
#include "lissome/kernel/winograd_u8s8.h"

#include <algorithm>
#include <vector>

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/portable_output_u8s8.h"
#include "lissome/kernel/split.h"
#include "lissome/kernel/winograd_tiles.h"

namespace lissome {
namespace {

constexpr int64_t kPoints = 16;
// Transformed inputs and sums of a block stay in the second-level cache.
constexpr int64_t kBlockBytes = 320 * 1024;
// Weights beyond this do not stay there beside them: each part then keeps its own share of the outputs.
constexpr int64_t kSharedWeightBytes = 1024 * 1024;

// 2 * G * g * G^T * 2, see the header.
void transform_weight(const int8_t* window, int (&points)[4][4]) {
  int half[4][3];
  for (int j = 0; j < 3; ++j) {
    const int a = window[j], b = window[3 + j], c = window[6 + j];
    half[0][j] = 2 * a, half[1][j] = a + b + c, half[2][j] = a - b + c, half[3][j] = 2 * c;
  }
  for (int i = 0; i < 4; ++i) {
    const auto [a, b, c] = half[i];
    points[i][0] = 2 * a, points[i][1] = a + b + c, points[i][2] = a - b + c, points[i][3] = 2 * c;
  }
}

// B^T * d * B.
void transform_input(const int (&d)[4][4], int (&t)[4][4]) {
  int half[4][4];
  for (int j = 0; j < 4; ++j) {
    half[0][j] = d[0][j] - d[2][j], half[1][j] = d[1][j] + d[2][j];
    half[2][j] = d[2][j] - d[1][j], half[3][j] = d[1][j] - d[3][j];
  }
  for (int i = 0; i < 4; ++i) {
    const auto [a, b, c, e] = half[i];
    t[i][0] = a - c, t[i][1] = b + c, t[i][2] = c - b, t[i][3] = b - e;
  }
}

// A^T * m * A, which is four times the sums of the window.
void transform_output(const int (&m)[4][4], int (&y)[2][2]) {
  int half[2][4];
  for (int j = 0; j < 4; ++j) {
    half[0][j] = m[0][j] + m[1][j] + m[2][j];
    half[1][j] = m[1][j] - m[2][j] - m[3][j];
  }
  for (int i = 0; i < 2; ++i) {
    const auto [a, b, c, e] = half[i];
    y[i][0] = a + b + c, y[i][1] = b - c - e;
  }
}

int64_t weight_offset(int64_t in_channels, int64_t oc, int64_t ic, int64_t point) {
  const int64_t pair = (oc / kWinogradBytes * kPoints + point) * (in_channels / 2) + ic / 2;
  return (pair * kWinogradBytes + oc % kWinogradBytes) * 2 + ic % 2;
}

}  // namespace

int64_t packed_winograd_u8s8_size(int64_t out_channels, int64_t in_channels) {
  return kPoints * out_channels * in_channels;
}

void pack_winograd_u8s8(const int8_t* weight, int64_t out_channels, int64_t in_channels, int16_t* packed,
                        int32_t* weight_sums) {
  for (int64_t oc = 0; oc < out_channels; ++oc) {
    weight_sums[oc] = 0;
    for (int64_t ic = 0; ic < in_channels; ++ic) {
      const int8_t* window = weight + (oc * in_channels + ic) * 9;
      int points[4][4];
      transform_weight(window, points);
      for (int point = 0; point < kPoints; ++point) {
        packed[weight_offset(in_channels, oc, ic, point)] = static_cast<int16_t>(points[point / 4][point % 4]);
      }
      for (int tap = 0; tap < 9; ++tap) weight_sums[oc] += window[tap];
    }
  }
}

void choose_winograd_u8s8_blocks(WinogradShape& shape, int parts) {
  const int64_t weight_bytes = 2 * packed_winograd_u8s8_size(shape.out_channels, shape.in_channels);
  shape.split_outputs = shape.out_channels / kWinogradBytes >= parts && weight_bytes > kSharedWeightBytes;
  const int64_t tiles = count_tiles(shape.window, shape.tile).all();
  const int64_t mine = shape.split_outputs ? tiles : (tiles + parts - 1) / parts;
  const int64_t fitting = std::max<int64_t>(kBlockBytes / (kPoints * (2 * shape.in_channels + 4 * kWinogradBytes)), 1);
  const int64_t blocks = std::max<int64_t>((mine + fitting - 1) / fitting, 1);
  shape.block = std::max<int64_t>((mine + blocks - 1) / blocks, 1);
}

int64_t winograd_u8s8_scratch(const WinogradShape& shape) {
  return kPoints * (2 * words_stride(shape) + 4 * sums_stride(shape));
}

void winograd_u8s8_portable(const WinogradU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  const TileCounts counts = count_tiles(w, 2);
  const Range tiles = split_evenly(counts.all(), part, parts);
  std::vector<int> inputs(static_cast<size_t>(kPoints * call.in_channels));
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const TileCorner corner = find_corner(counts, 2, tile);
    for (int64_t ic = 0; ic < call.in_channels; ++ic) {
      int window[4][4], points[4][4];
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) window[i][j] = find_input(call, corner, i, j)[ic];
      }
      transform_input(window, points);
      std::copy_n(&points[0][0], kPoints, inputs.begin() + ic * kPoints);
    }
    for (int64_t oc = 0; oc < call.out_channels; ++oc) {
      int sums[4][4] = {}, y[2][2];
      for (int point = 0; point < kPoints; ++point) {
        for (int64_t ic = 0; ic < call.in_channels; ++ic) {
          sums[point / 4][point % 4] += inputs[static_cast<size_t>(ic * kPoints + point)] *
                                        call.weight[weight_offset(call.in_channels, oc, ic, point)];
        }
      }
      transform_output(sums, y);
      for (int64_t i = 0; i < std::min<int64_t>(2, w.out_height - corner.top); ++i) {
        for (int64_t j = 0; j < std::min<int64_t>(2, w.out_width - corner.left); ++j) {
          const int64_t row = (corner.image * w.out_height + corner.top + i) * w.out_width + corner.left + j;
          finish_one(call, row, oc, y[i][j] / 4);
        }
      }
    }
  }
}

}  // namespace lissome

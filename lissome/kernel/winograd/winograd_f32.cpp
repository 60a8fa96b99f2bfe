// Packing, blocks, and the portable form, which sums in double.
#include "lissome/kernel/winograd/winograd_f32.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"
#include "lissome/kernel/winograd/kernel_versions.h"
#include "lissome/kernel/winograd/winograd_tiles.h"

namespace lissome {
namespace {

// Transformed inputs and products of a block stay in the second-level cache beside the weights.
constexpr int64_t kBlockBytes = 512 * 1024;
// Weights beyond this do not stay in one core's cache: each part then keeps its own share of the outputs, and takes
// more tiles at once, since the weights stream by for each block.
constexpr int64_t kSharedWeightBytes = 1536 * 1024, kStreamingBlockBytes = 1280 * 1024;
constexpr int64_t kLeastTiles = 24;

// One row of a transform: coefficients of the inputs, by the sizes of the tile.
struct Transform {
  int64_t rows, columns;
  const double* values;
  double at(int64_t row, int64_t column) const { return values[row * columns + column]; }
};

constexpr double kInput4[] = {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                              0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1};
constexpr double kWeight4[] = {1.0 / 4,  0,        0,       -1.0 / 6, -1.0 / 6,  -1.0 / 6, -1.0 / 6, 1.0 / 6, -1.0 / 6,
                               1.0 / 24, 1.0 / 12, 1.0 / 6, 1.0 / 24, -1.0 / 12, 1.0 / 6,  0,        0,       1};
constexpr double kOutput4[] = {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1};
constexpr double kInput2[] = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1};
constexpr double kWeight2[] = {1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1};
constexpr double kOutput2[] = {1, 1, 1, 0, 0, 1, -1, -1};

Transform input_transform(int64_t tile) { return {tile + 2, tile + 2, tile == 4 ? kInput4 : kInput2}; }
Transform weight_transform(int64_t tile) { return {tile + 2, 3, tile == 4 ? kWeight4 : kWeight2}; }
Transform output_transform(int64_t tile) { return {tile, tile + 2, tile == 4 ? kOutput4 : kOutput2}; }

// transform * matrix * transform^T; `matrix` is square.
void apply(const Transform& transform, const double* matrix, double* result) {
  std::vector<double> half(static_cast<size_t>(transform.rows * transform.columns));
  for (int64_t i = 0; i < transform.rows; ++i) {
    for (int64_t j = 0; j < transform.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < transform.columns; ++k) sum += transform.at(i, k) * matrix[k * transform.columns + j];
      half[static_cast<size_t>(i * transform.columns + j)] = sum;
    }
  }
  for (int64_t i = 0; i < transform.rows; ++i) {
    for (int64_t j = 0; j < transform.rows; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < transform.columns; ++k)
        sum += half[static_cast<size_t>(i * transform.columns + k)] * transform.at(j, k);
      result[i * transform.rows + j] = sum;
    }
  }
}

}  // namespace

int64_t packed_winograd_f32_size(int64_t out_channels, int64_t in_channels, int64_t tile) {
  return (tile + 2) * (tile + 2) * packed_linear_f32_size(out_channels, in_channels);
}

void pack_winograd_f32(const float* weight, int64_t out_channels, int64_t in_channels, int64_t tile, float* packed) {
  const int64_t points = (tile + 2) * (tile + 2);
  std::memset(packed, 0,
              static_cast<size_t>(packed_winograd_f32_size(out_channels, in_channels, tile)) * sizeof(float));
  double window[9], transformed[36];
  for (int64_t oc = 0; oc < out_channels; ++oc) {
    float* panel = packed + oc / kLinearPanel * points * in_channels * kLinearPanel + oc % kLinearPanel;
    for (int64_t ic = 0; ic < in_channels; ++ic) {
      std::copy_n(weight + (oc * in_channels + ic) * 9, 9, window);
      apply(weight_transform(tile), window, transformed);
      for (int64_t point = 0; point < points; ++point)
        panel[(point * in_channels + ic) * kLinearPanel] = static_cast<float>(transformed[point]);
    }
  }
}

void choose_winograd_blocks(WinogradShape& shape, int parts) {
  const int64_t points = (shape.tile + 2) * (shape.tile + 2);
  const int64_t panels = (shape.out_channels + kLinearPanel - 1) / kLinearPanel;
  const int64_t weight_bytes = points * panels * kLinearPanel * shape.in_channels * int64_t{sizeof(float)};
  shape.split_outputs = parts > 1 && panels >= parts && weight_bytes > kSharedWeightBytes;
  const int64_t tiles = count_tiles(shape.window, shape.tile).all();
  const int64_t mine = shape.split_outputs ? tiles : (tiles + parts - 1) / parts;
  const int64_t tile_bytes = points * (shape.in_channels + kLinearPanel) * int64_t{sizeof(float)};
  const int64_t fitting =
      std::max((shape.split_outputs ? kStreamingBlockBytes : kBlockBytes) / tile_bytes, kLeastTiles);
  const int64_t blocks = std::max<int64_t>((mine + fitting - 1) / fitting, 1);
  shape.block = std::max<int64_t>((mine + blocks - 1) / blocks, 1);
}

int64_t winograd_scratch_size(const WinogradShape& shape) {
  const int64_t points = (shape.tile + 2) * (shape.tile + 2);
  return points * (point_stride(shape.block, shape.in_channels) + point_stride(shape.block, kLinearPanel));
}

namespace {

template <typename Call>
void run_portable(const Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t side = call.tile + 2, points = side * side;
  const TileCounts counts = count_tiles(w, call.tile);
  const Range tiles = split_evenly(counts.all(), part, parts);
  double window[36], transformed[36], results[16];
  std::vector<double> inputs(static_cast<size_t>(points * call.in_channels));
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const TileCorner corner = find_corner(counts, call.tile, tile);
    for (int64_t ic = 0; ic < call.in_channels; ++ic) {
      for (int64_t i = 0; i < side; ++i) {
        for (int64_t j = 0; j < side; ++j) window[i * side + j] = widen_portable(find_input(call, corner, i, j)[ic]);
      }
      apply(input_transform(call.tile), window, transformed);
      std::copy_n(transformed, points, inputs.begin() + ic * points);
    }
    for (int64_t oc = 0; oc < call.out_channels; ++oc) {
      const float* panel =
          call.weight + oc / kLinearPanel * points * call.in_channels * kLinearPanel + oc % kLinearPanel;
      for (int64_t point = 0; point < points; ++point) {
        transformed[point] = 0;
        for (int64_t ic = 0; ic < call.in_channels; ++ic)
          transformed[point] +=
              inputs[static_cast<size_t>(ic * points + point)] * panel[(point * call.in_channels + ic) * kLinearPanel];
      }
      apply(output_transform(call.tile), transformed, results);
      for (int64_t i = 0; i < std::min(call.tile, w.out_height - corner.top); ++i) {
        for (int64_t j = 0; j < std::min(call.tile, w.out_width - corner.left); ++j) {
          const int64_t row = (corner.image * w.out_height + corner.top + i) * w.out_width + corner.left + j;
          double sum = results[i * call.tile + j] + (call.bias ? call.bias[oc] : 0);
          store_portable(call, row, oc, sum);
        }
      }
    }
  }
}

}  // namespace

void winograd_f32_portable(const WinogradF32Call& call, int part, int parts) { run_portable(call, part, parts); }
void winograd_bf16_portable(const WinogradBf16Call& call, int part, int parts) { run_portable(call, part, parts); }

}  // namespace lissome

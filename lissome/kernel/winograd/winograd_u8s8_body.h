// The Winograd convolution of bytes in whole numbers: a block of tiles is transformed into 16-bit numbers, multiplied
// point by point for 32 outputs at a time, and these are transformed back and finished.
#pragma once

#include "lissome/kernel/isa/tile_u8s8_body.h"
#include "lissome/kernel/winograd/winograd_tiles.h"
#include "lissome/kernel/winograd/winograd_u8s8.h"

namespace lissome {
namespace {

constexpr int kTile = kWinogradByteTile, kSide = kTile + 2, kPoints = kSide * kSide;
constexpr int64_t kPanel = kWinogradBytePanel;
constexpr int64_t kPieceWidth = 2 * Floats::kWidth;  // outputs that are summed and finished together
// Two registers of 32 hold a row of sums: there is room for more rows.
constexpr int kPointRows = kTileVectors > 2 ? 2 * kTileRows : kTileRows;

// The transforms of winograd_u8s8.cpp along one dimension, with what their rows share computed once.
LISSOME_INLINE void transform_input(const Shorts (&d)[kSide], Shorts (&t)[kSide]) {
  const Shorts even = d[4] - times_four(d[2]), odd = d[3] - times_four(d[1]);
  const Shorts near = d[4] - d[2], step = d[3] - d[1], far = step + step;
  t[0] = near + times_four(d[0] - d[2]);
  t[1] = even + odd, t[2] = even - odd;
  t[3] = near + far, t[4] = near - far;
  t[5] = d[5] - d[3] - (far + far);
}
LISSOME_INLINE void transform_output(const Ints (&m)[kSide], Ints (&y)[kTile]) {
  const Ints sum = m[1] + m[2], difference = m[1] - m[2];
  const Ints far_sum = m[3] + m[4], far_difference = m[3] - m[4];
  const Ints twice = sum + sum;
  y[0] = m[0] + far_sum + (twice + twice);
  y[1] = difference + difference + far_difference;
  y[2] = sum + far_sum;
  y[3] = difference + (far_difference + far_difference) + m[5];
}

// One tile of x -> row `v`[.][channels] of each point.
void load_byte_tile(const WinogradU8S8Call& call, const TileCorner& corner, int16_t* v, int64_t stride) {
  const uint8_t* inputs[kSide][kSide];
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) inputs[i][j] = find_input(call, corner, i, j);
  }
  const Shorts zero = fill_shorts(static_cast<int16_t>(call.x_zero));
  for (int64_t c = 0; c < call.in_channels; c += Shorts::kWidth) {
    Shorts half[kSide][kSide];
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) {
      Shorts d[kSide], t[kSide];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) d[i] = load_bytes(inputs[i][j] + c) - zero;
      transform_input(d, t);
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) half[i][j] = t[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < kSide; ++i) {
      Shorts t[kSide];
      transform_input(half[i], t);
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) store_shorts(v + (i * kSide + j) * stride + c, t[j]);
    }
  }
}

// m[rows][32] = v[rows][inputs] * weight, for one point of the tiles of a block.
struct PointProduct {
  const int16_t *v, *weight;  // of the first panel
  int32_t* m;
  int64_t inputs;
};

struct PointTile {
  template <int Rows, int Vectors>
  static void run(const PointProduct& product, TilePlace place, Ahead& ahead) {
    const int16_t* rows[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) rows[r] = product.v + (place.row + r) * product.inputs;
    const int64_t panel = kPoints * kPanel * product.inputs;
    int64_t at[Vectors];
    Ints sums[Rows][Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      const int64_t output = place.output + v * Floats::kWidth;
      at[v] = output / kPanel * panel + output % kPanel * 2;
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) sums[r][v] = zero_ints();
    }
    for (int64_t k = 0; k < product.inputs; k += 2) {
      Shorts w[Vectors];
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) {
        w[v] = load_shorts(product.weight + at[v] + k * kPanel);
        if (ahead.at != nullptr) _mm_prefetch(ahead.at + 2 * (at[v] + k * kPanel), _MM_HINT_T1);
      }
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Shorts x = broadcast_pair(rows[r] + k);
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) add_pairs(x, w[v], sums[r][v]);
      }
    }
    int32_t* to = product.m + place.row * kWinogradBytes + place.output;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r, to += kWinogradBytes) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) store_ints(to + v * Floats::kWidth, sums[r][v]);
    }
  }
};

// The products of one point with the tiles of a block, as even as can be; the next point's weights come meanwhile.
LISSOME_INLINE void multiply_point(const PointProduct& product, const int16_t* next, int64_t count) {
  for (int64_t output = 0; output < kWinogradBytes; output += kPieceWidth) {
    int64_t tiles = (count + kPointRows - 1) / kPointRows;
    for (int64_t row = 0; tiles > 0; --tiles) {
      const int64_t rows = (count - row + tiles - 1) / tiles;
      Ahead ahead = {row == 0 ? reinterpret_cast<const char*>(next) : nullptr};
      choose_tiles<PointTile, 2, kPointRows>(product, {row, output, kPieceWidth}, rows, 1, ahead);
      row += rows;
    }
  }
}

// The first `count` pixels of a row of a tile.
template <int Pixels>
LISSOME_INLINE void store_pixels(const WinogradU8S8Call& call, TilePlace place, int64_t count,
                                 const Ints (&y)[kTile][2]) {
  if constexpr (Pixels > 1) {
    if (count < Pixels) return store_pixels<Pixels - 1>(call, place, count, y);
  }
  Ints some[Pixels][2];
#pragma GCC unroll 4
  for (int p = 0; p < Pixels; ++p) some[p][0] = y[p][0], some[p][1] = y[p][1];
  store_tile(call, place, some);
}

// One tile of a piece of outputs: sums -> results.
void store_byte_tile(const WinogradU8S8Call& call, const TileCorner& corner, int64_t output, const int32_t* m,
                     int64_t stride) {
  const Ints inverse = fill_ints(kInverseOfNine);
  Ints y[kTile][kTile][2];  // row, pixel, register
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    Ints half[kTile][kSide];
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) {
      Ints column[kSide], t[kTile];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) column[i] = load_ints(m + (i * kSide + j) * stride + v * Floats::kWidth);
      transform_output(column, t);
#pragma GCC unroll 4
      for (int i = 0; i < kTile; ++i) half[i][j] = t[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < kTile; ++i) {
      Ints t[kTile];
      transform_output(half[i], t);
#pragma GCC unroll 4
      for (int j = 0; j < kTile; ++j) {
        y[i][j][v] = shift_right(multiply(t[j], inverse), kWinogradShifts[i] + kWinogradShifts[j]);
      }
    }
  }
  const Window& w = call.window;
  const int64_t first = (corner.image * w.out_height + corner.top) * w.out_width + corner.left;
  for (int i = 0; i < kTile && corner.top + i < w.out_height; ++i) {
    store_pixels<kTile>(call, {first + i * w.out_width, output, kPieceWidth}, w.out_width - corner.left, y[i]);
  }
}

LISSOME_INLINE void run_winograd_u8s8(const WinogradU8S8Call& call, int part, int parts) {
  const TileCounts counts = count_tiles(call.window, kTile);
  const int64_t columns = call.out_channels / kWinogradBytes, inputs = call.in_channels;
  Range my_tiles = {0, counts.all()}, my_columns = {0, columns};
  (call.split_outputs ? my_columns : my_tiles) = split_evenly(call.split_outputs ? columns : counts.all(), part, parts);
  const int64_t v_stride = words_stride(call), m_stride = sums_stride(call);
  std::byte* scratch = call.scratch + part * kPoints * (2 * v_stride + 4 * m_stride);
  auto* v = reinterpret_cast<int16_t*>(scratch);
  auto* m = reinterpret_cast<int32_t*>(scratch + 2 * kPoints * v_stride);
  const int64_t all = my_tiles.end - my_tiles.begin, blocks = (all + call.block - 1) / call.block;
  const int64_t point_size = inputs * kPanel, column_size = kPoints * inputs * kWinogradBytes;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = my_tiles.begin + all * block / blocks;
    const int64_t count = my_tiles.begin + all * (block + 1) / blocks - first;
    for (int64_t i = 0; i < count; ++i) {
      load_byte_tile(call, find_corner(counts, kTile, first + i), v + i * inputs, v_stride);
    }
    for (int64_t column = my_columns.begin; column < my_columns.end; ++column) {
      const int16_t* weight = call.weight + column * column_size;
      for (int point = 0; point < kPoints; ++point) {
        const int16_t* mine = weight + point * point_size;
        const int16_t* next = point + 1 < kPoints ? mine + point_size : weight + column_size;
        multiply_point({v + point * v_stride, mine, m + point * m_stride, inputs}, next, count);
      }
      for (int64_t i = 0; i < count; ++i) {
        const TileCorner corner = find_corner(counts, kTile, first + i);
        for (int64_t n = 0; n < kWinogradBytes; n += kPieceWidth) {
          store_byte_tile(call, corner, column * kWinogradBytes + n, m + i * kWinogradBytes + n, m_stride);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lissome

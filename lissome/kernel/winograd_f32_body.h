// The Winograd convolution over Floats: a block of tiles is transformed into scratch, multiplied panel by panel, and
// each panel transformed back and finished.
#pragma once

#include "lissome/kernel/tile_f32_body.h"
#include "lissome/kernel/winograd_tiles.h"

namespace lissome {
namespace {

// The transforms of winograd_f32.cpp along one dimension, with what their rows share computed once.
template <int Tile>
struct Winograd;

template <>
struct Winograd<4> {
  static LISSOME_INLINE void transform_input(const Floats (&d)[6], Floats (&t)[6]) {
    const Floats two = fill(2.0f), four = fill(4.0f), five = fill(5.0f);
    const Floats even = subtract_product(four, d[2], d[4]), odd = subtract_product(four, d[1], d[3]);
    const Floats near = d[4] - d[2], far = two * (d[3] - d[1]);
    t[0] = multiply_add(four, d[0], subtract_product(five, d[2], d[4]));
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = near + far;
    t[4] = near - far;
    t[5] = multiply_add(four, d[1], subtract_product(five, d[3], d[5]));
  }
  static LISSOME_INLINE void transform_output(const Floats (&m)[6], Floats (&y)[4]) {
    const Floats sum = m[1] + m[2], difference = m[1] - m[2];
    const Floats far_sum = m[3] + m[4], far_difference = m[3] - m[4];
    y[0] = m[0] + sum + far_sum;
    y[1] = multiply_add(fill(2.0f), far_difference, difference);
    y[2] = multiply_add(fill(4.0f), far_sum, sum);
    y[3] = multiply_add(fill(8.0f), far_difference, difference) + m[5];
  }
};

template <>
struct Winograd<2> {
  static LISSOME_INLINE void transform_input(const Floats (&d)[4], Floats (&t)[4]) {
    t[0] = d[0] - d[2];
    t[1] = d[1] + d[2];
    t[2] = d[2] - d[1];
    t[3] = d[1] - d[3];
  }
  static LISSOME_INLINE void transform_output(const Floats (&m)[4], Floats (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
};

// One tile of x -> row `v`[.][channels] of each point.
template <int Tile>
void load_winograd_tile(const WinogradF32Call& call, const TileCorner& corner, float* v, int64_t stride) {
  constexpr int kSide = Tile + 2;
  const float* inputs[kSide][kSide];
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j) inputs[i][j] = find_input(call, corner, i, j);
  }
  for (int64_t c = 0; c < call.in_channels; c += Floats::kWidth) {
    const int64_t left = call.in_channels - c;
    const bool whole = left >= Floats::kWidth;
    alignas(64) float half[kSide][kSide][Floats::kWidth];
    for (int j = 0; j < kSide; ++j) {
      Floats d[kSide], t[kSide];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) d[i] = whole ? load(inputs[i][j] + c) : load_first(inputs[i][j] + c, left);
      Winograd<Tile>::transform_input(d, t);
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) store(half[i][j], t[i]);
    }
    for (int i = 0; i < kSide; ++i) {
      Floats d[kSide], t[kSide];
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) d[j] = load(half[i][j]);
      Winograd<Tile>::transform_input(d, t);
      float* to = v + i * kSide * stride + c;
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) {
        if (whole) {
          store(to + j * stride, t[j]);
        } else {
          store_first(to + j * stride, t[j], left);
        }
      }
    }
  }
}

// m[Rows][panel] = v[Rows][inputs] * weight, one column of registers after the other.
template <int Rows>
void multiply_winograd_rows(const float* v, int64_t inputs, const float* weight, float* m) {
  const float* rows[Rows];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) rows[r] = v + r * inputs;
  for (int64_t n = 0; n < kLinearPanel; n += kTileVectors * Floats::kWidth) {
    Floats sums[Rows][kTileVectors];
    clear_sums(sums);
    accumulate(rows, weight + n, inputs, sums);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int k = 0; k < kTileVectors; ++k) store(m + r * kLinearPanel + n + k * Floats::kWidth, sums[r][k]);
    }
  }
}

[[maybe_unused]] void multiply_winograd_point(const float* v, int64_t inputs, const float* weight, int64_t rows,
                                              float* m) {
  static_assert(kTileRows == 6);
  for (; rows >= kTileRows; rows -= kTileRows, v += kTileRows * inputs, m += kTileRows * kLinearPanel) {
    multiply_winograd_rows<kTileRows>(v, inputs, weight, m);
  }
  switch (rows) {
    case 5: return multiply_winograd_rows<5>(v, inputs, weight, m);
    case 4: return multiply_winograd_rows<4>(v, inputs, weight, m);
    case 3: return multiply_winograd_rows<3>(v, inputs, weight, m);
    case 2: return multiply_winograd_rows<2>(v, inputs, weight, m);
    case 1: return multiply_winograd_rows<1>(v, inputs, weight, m);
    default: return;
  }
}

// One tile of one panel: products -> outputs.
template <int Tile>
void store_winograd_tile(const WinogradF32Call& call, const TileCorner& corner, int64_t output, const float* m,
                         int64_t stride) {
  constexpr int kSide = Tile + 2;
  const Window& w = call.window;
  const int64_t left = call.out_channels - output;
  const int64_t outputs = left < kLinearPanel ? left : kLinearPanel;
  alignas(64) float results[Tile][Tile][kLinearPanel];
  for (int64_t n = 0; n < outputs; n += Floats::kWidth) {
    Floats half[Tile][kSide];
#pragma GCC unroll 6
    for (int j = 0; j < kSide; ++j) {
      Floats products[kSide], y[Tile];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) products[i] = load(m + (i * kSide + j) * stride + n);
      Winograd<Tile>::transform_output(products, y);
#pragma GCC unroll 4
      for (int i = 0; i < Tile; ++i) half[i][j] = y[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < Tile; ++i) {
      Floats y[Tile];
      Winograd<Tile>::transform_output(half[i], y);
#pragma GCC unroll 4
      for (int j = 0; j < Tile; ++j) store(results[i][j] + n, y[j]);
    }
  }
  const int64_t across = w.out_width - corner.left < Tile ? w.out_width - corner.left : Tile;
  for (int i = 0; i < Tile && corner.top + i < w.out_height; ++i) {
    const int64_t row = (corner.image * w.out_height + corner.top + i) * w.out_width + corner.left;
    finish_rows(call, results[i][0], kLinearPanel, static_cast<int>(across), {row, output, outputs});
  }
}

template <int Tile>
LISSOME_INLINE void run_winograd_tiles(const WinogradF32Call& call, int part, int parts) {
  constexpr int kPoints = (Tile + 2) * (Tile + 2);
  const int64_t inputs = call.in_channels;
  const TileCounts counts = count_tiles(call.window, Tile);
  const int64_t panels = (call.out_channels + kLinearPanel - 1) / kLinearPanel;
  Range my_tiles = {0, counts.all()}, my_panels = {0, panels};
  (call.split_outputs ? my_panels : my_tiles) = split_evenly(call.split_outputs ? panels : counts.all(), part, parts);
  const int64_t v_stride = point_stride(call.block, inputs), m_stride = point_stride(call.block, kLinearPanel);
  float* v = call.scratch + part * kPoints * (v_stride + m_stride);
  float* m = v + kPoints * v_stride;
  for (int64_t first = my_tiles.begin; first < my_tiles.end; first += call.block) {
    const int64_t left = my_tiles.end - first, count = left < call.block ? left : call.block;
    for (int64_t i = 0; i < count; ++i)
      load_winograd_tile<Tile>(call, find_corner(counts, Tile, first + i), v + i * inputs, v_stride);
    for (int64_t panel = my_panels.begin; panel < my_panels.end; ++panel) {
      const float* weight = call.weight + panel * kPoints * inputs * kLinearPanel;
      for (int point = 0; point < kPoints; ++point, weight += inputs * kLinearPanel)
        multiply_winograd_point(v + point * v_stride, inputs, weight, count, m + point * m_stride);
      for (int64_t i = 0; i < count; ++i)
        store_winograd_tile<Tile>(call, find_corner(counts, Tile, first + i), panel * kLinearPanel,
                                  m + i * kLinearPanel, m_stride);
    }
  }
}

LISSOME_INLINE void run_winograd_f32(const WinogradF32Call& call, int part, int parts) {
  if (call.tile == 4) {
    run_winograd_tiles<4>(call, part, parts);
  } else {
    run_winograd_tiles<2>(call, part, parts);
  }
}

}  // namespace
}  // namespace lissome

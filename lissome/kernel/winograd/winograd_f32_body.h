// The Winograd convolution over Floats, from and to f32 or bf16: a block of tiles is transformed into scratch,
// multiplied panel by panel, and each panel transformed back and finished.
#pragma once

#include "lissome/kernel/isa/tile_f32_body.h"
#include "lissome/kernel/winograd/winograd_tiles.h"

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
template <int Tile, typename Call>
void load_winograd_tile(const Call& call, const TileCorner& corner, float* v, int64_t stride) {
  constexpr int kSide = Tile + 2;
  decltype(call.x) inputs[kSide][kSide];
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

// m[rows][panel] = v[rows][inputs] * weight, for one point of the tiles of a block.
struct PointProduct {
  const float *v, *weight;
  float* m;
  int64_t inputs;
};

struct PointTile {
  template <int Rows, int Vectors>
  static void run(const PointProduct& product, TilePlace place, Visit& visit) {
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = product.v + (place.row + r) * product.inputs;
    Floats sums[Rows][Vectors];
    clear_sums(sums);
    accumulate(rows, product.weight + place.output, product.inputs, sums, visit.ahead);
    store_sums(product.m + place.row * kLinearPanel + place.output, kLinearPanel, sums);
  }
};

// What follows the transform of a row of outputs, 16 channels at a time: the common endings without a spill.
template <typename Output>
struct WinogradEnd {
  const Output& output;
  bool simple;
  Floats floor;

  LISSOME_INLINE explicit WinogradEnd(const Output& o)
      : output(o),
        simple((o.epilogue.activation == Activation::none || o.epilogue.activation == Activation::relu) &&
               o.residual_place != ResidualPlace::after_activation),
        floor(fill(o.epilogue.activation == Activation::relu ? 0.0f : -__builtin_inff())) {}

  LISSOME_INLINE void store_at(int64_t row, int64_t channel, Floats value) const {
    if (output.residual_place == ResidualPlace::before_activation) {
      value = value + load(output.residual + row * output.residual_stride + channel);
    }
    store(output.y + row * output.y_stride + channel, max_with(floor, value));
  }
};

// One tile of one panel: products -> outputs.
template <int Tile, typename Call>
void store_winograd_tile(const Call& call, const TileCorner& corner, int64_t output, const float* m, int64_t stride) {
  constexpr int kSide = Tile + 2;
  const Window& w = call.window;
  const int64_t left = call.out_channels - output;
  const int64_t outputs = left < kLinearPanel ? left : kLinearPanel;
  const int64_t across = w.out_width - corner.left < Tile ? w.out_width - corner.left : Tile;
  const int64_t down = w.out_height - corner.top < Tile ? w.out_height - corner.top : Tile;
  const int64_t first = (corner.image * w.out_height + corner.top) * w.out_width + corner.left;
  const WinogradEnd end(call);
  const bool direct = end.simple && outputs % Floats::kWidth == 0;
  alignas(64) float results[Tile][Tile][kLinearPanel];
  for (int64_t n = 0; n < outputs; n += Floats::kWidth) {
    alignas(64) float half[Tile][kSide][Floats::kWidth];
    for (int j = 0; j < kSide; ++j) {
      Floats products[kSide], y[Tile];
#pragma GCC unroll 6
      for (int i = 0; i < kSide; ++i) products[i] = load(m + (i * kSide + j) * stride + n);
      Winograd<Tile>::transform_output(products, y);
#pragma GCC unroll 4
      for (int i = 0; i < Tile; ++i) store(half[i][j], y[i]);
    }
    const Floats bias = direct && call.bias ? load(call.bias + output + n) : zeros();
    for (int i = 0; i < Tile; ++i) {
      Floats products[kSide], y[Tile];
#pragma GCC unroll 6
      for (int j = 0; j < kSide; ++j) products[j] = load(half[i][j]);
      Winograd<Tile>::transform_output(products, y);
      if (!direct) {
#pragma GCC unroll 4
        for (int j = 0; j < Tile; ++j) store(results[i][j] + n, y[j]);
      } else if (i < down) {
#pragma GCC unroll 4
        for (int j = 0; j < Tile; ++j) {
          if (j < across) end.store_at(first + i * w.out_width + j, output + n, y[j] + bias);
        }
      }
    }
  }
  if (direct) return;
  for (int i = 0; i < down; ++i) {
    finish_rows(call, results[i][0], kLinearPanel, across, {first + i * w.out_width, output, outputs});
  }
}

template <int Tile, typename Call>
LISSOME_INLINE void run_winograd_tiles(const Call& call, int part, int parts) {
  constexpr int kPoints = (Tile + 2) * (Tile + 2);
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const int64_t inputs = call.in_channels;
  const TileCounts counts = count_tiles(call.window, Tile);
  const int64_t panels = (call.out_channels + kLinearPanel - 1) / kLinearPanel;
  Range my_tiles = {0, counts.all()}, my_panels = {0, panels};
  (call.split_outputs ? my_panels : my_tiles) = split_evenly(call.split_outputs ? panels : counts.all(), part, parts);
  const int64_t v_stride = point_stride(call.block, inputs), m_stride = point_stride(call.block, kLinearPanel);
  float* v = call.scratch + part * kPoints * (v_stride + m_stride);
  float* m = v + kPoints * v_stride;
  const int64_t all = my_tiles.end - my_tiles.begin, blocks = (all + call.block - 1) / call.block;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = my_tiles.begin + all * block / blocks;
    const int64_t count = my_tiles.begin + all * (block + 1) / blocks - first;
    const int64_t visits = (count + kTileRows - 1) / kTileRows * (kLinearPanel / kColumn);
    for (int64_t i = 0; i < count; ++i)
      load_winograd_tile<Tile>(call, find_corner(counts, Tile, first + i), v + i * inputs, v_stride);
    for (int64_t panel = my_panels.begin; panel < my_panels.end; ++panel) {
      const float* weight = call.weight + panel * kPoints * inputs * kLinearPanel;
      for (int point = 0; point < kPoints; ++point, weight += inputs * kLinearPanel) {
        const PointProduct product = {v + point * v_stride, weight, m + point * m_stride, inputs};
        Visit visit = {0, inputs, true, true};
        // Points and panels follow each other.
        if (point + 1 < kPoints || panel + 1 < my_panels.end) {
          visit.ahead = look_ahead(weight + inputs * kLinearPanel, inputs, visits);
        }
        for (int64_t n = 0; n < kLinearPanel; n += kColumn)
          run_tile_rows<PointTile, kTileVectors>(product, {0, n, kColumn}, count, visit);
      }
      for (int64_t i = 0; i < count; ++i)
        store_winograd_tile<Tile>(call, find_corner(counts, Tile, first + i), panel * kLinearPanel,
                                  m + i * kLinearPanel, m_stride);
    }
  }
}

template <typename Call>
LISSOME_INLINE void run_winograd(const Call& call, int part, int parts) {
  if (call.tile == 4) {
    run_winograd_tiles<4>(call, part, parts);
  } else {
    run_winograd_tiles<2>(call, part, parts);
  }
}

LISSOME_INLINE void run_winograd_f32(const WinogradF32Call& call, int part, int parts) {
  run_winograd(call, part, parts);
}
LISSOME_INLINE void run_winograd_bf16(const WinogradBf16Call& call, int part, int parts) {
  run_winograd(call, part, parts);
}

}  // namespace
}  // namespace lissome

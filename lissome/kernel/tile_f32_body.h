// The heart of the f32 products, over Floats: a tile of up to 6 rows and kTileVectors registers of outputs stays in
// registers while x is read where it lies and the weight panel streams from the second-level cache; then the tile is
// finished on the way out. Shared by linear_f32_body.h and conv_f32_body.h.
#pragma once

#include "lissome/kernel/vector.h"

#include "lissome/kernel/activation_body.h"
#include "lissome/kernel/linear_f32.h"
#include "lissome/kernel/split.h"

namespace lissome {
namespace {

// The tile's place: its first row and output, and how many outputs really exist there.
struct TilePlace {
  int64_t row, output, outputs;
};

template <int Rows, int Vectors>
LISSOME_INLINE void clear_sums(Floats (&sums)[Rows][Vectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[r][v] = zeros();
  }
}

// sums += rows[.][0..count) * weight[0..count)[panel]
template <int Rows, int Vectors>
LISSOME_INLINE void accumulate(const float* const (&rows)[Rows], const float* weight, int64_t count,
                               Floats (&sums)[Rows][Vectors]) {
  for (int64_t k = 0; k < count; ++k) {
    Floats columns[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) columns[v] = load(weight + v * Floats::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Floats value = fill(rows[r][k]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] = multiply_add(value, columns[v], sums[r][v]);
    }
    weight += kLinearPanel;
  }
}

// One row: the sums of several steps of k run beside each other, else the latency of the additions would bind.
template <int Vectors>
LISSOME_INLINE void accumulate(const float* const (&rows)[1], const float* weight, int64_t count,
                               Floats (&sums)[1][Vectors]) {
  constexpr int kSteps = Vectors >= 4 ? 2 : 4;
  const float* x = rows[0];
  Floats partial[kSteps][Vectors];
  clear_sums(partial);
  int64_t k = 0;
  for (; k + kSteps <= count; k += kSteps) {
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
      const Floats value = fill(x[k + s]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        partial[s][v] = multiply_add(value, load(weight + s * kLinearPanel + v * Floats::kWidth), partial[s][v]);
      }
    }
    weight += kSteps * kLinearPanel;
  }
  for (; k < count; ++k, weight += kLinearPanel) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      partial[0][v] = multiply_add(fill(x[k]), load(weight + v * Floats::kWidth), partial[0][v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) sums[0][v] = sums[0][v] + partial[s][v];
  }
}

// Any activation, any number of outputs: finished rows through memory, out of line so that tiles stay small.
[[maybe_unused]] void finish_rows(const OutputF32& output, float* sums, int64_t sums_stride, int rows,
                                  TilePlace place) {
  for (int r = 0; r < rows; ++r) {
    float* row = sums + r * sums_stride;
    const int64_t at = place.row + r;
    const float* residual = output.residual_place == ResidualPlace::none
                                ? nullptr
                                : output.residual + at * output.residual_stride + place.output;
    const float* bias = output.bias ? output.bias + place.output : nullptr;
    float* y = output.y + at * output.y_stride + place.output;
    for (int64_t n = 0; n < place.outputs; n += Floats::kWidth) {
      const int64_t left = place.outputs - n < Floats::kWidth ? place.outputs - n : Floats::kWidth;
      Floats value = load(row + n);
      if (bias) value = value + load_first(bias + n, left);
      if (residual && output.residual_place == ResidualPlace::before_activation) {
        value = value + load_first(residual + n, left);
      }
      value = activate_vector(output.epilogue, value);
      if (residual && output.residual_place == ResidualPlace::after_activation) {
        value = value + load_first(residual + n, left);
      }
      store_first(y + n, value, left);
    }
  }
}

template <int Rows, int Vectors>
LISSOME_INLINE void store_tile(const OutputF32& output, TilePlace place, Floats (&sums)[Rows][Vectors]) {
  constexpr int64_t kWidth = Vectors * Floats::kWidth;
  const Activation activation = output.epilogue.activation;
  const bool simple = activation == Activation::none || activation == Activation::relu;
  if (!simple || place.outputs < kWidth || output.residual_place == ResidualPlace::after_activation) {
    alignas(64) float spill[Rows * kWidth];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) store(spill + r * kWidth + v * Floats::kWidth, sums[r][v]);
    }
    finish_rows(output, spill, kWidth, Rows, place);
    return;
  }
  const Floats floor = fill(activation == Activation::relu ? 0.0f : -__builtin_inff());
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    const int64_t at = place.row + r;
    float* y = output.y + at * output.y_stride + place.output;
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      Floats value = sums[r][v];
      if (output.bias) value = value + load(output.bias + place.output + v * Floats::kWidth);
      if (output.residual_place == ResidualPlace::before_activation) {
        value = value + load(output.residual + at * output.residual_stride + place.output + v * Floats::kWidth);
      }
      store(y + v * Floats::kWidth, max_with(floor, value));
    }
  }
}

#include "lissome/kernel/tile_loops_body.h"

}  // namespace
}  // namespace lissome

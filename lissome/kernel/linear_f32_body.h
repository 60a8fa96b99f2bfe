// The f32 linear kernel over Floats; included by linear_f32_avx2.cpp and linear_f32_avx512.cpp, each of which names its
// tile (kTileVectors registers wide) and gives the result a name of its own.
//
// A tile of up to 6 rows stays in registers over all of `inputs`; x is read where it lies, the weight panel of 64
// outputs streams from the second-level cache. Rows are taken in chunks that stay there too.
#pragma once

#include "lissome/kernel/activation_body.h"
#include "lissome/kernel/linear_f32.h"
#include "lissome/kernel/split.h"

#define LISSOME_INLINE inline __attribute__((always_inline))

namespace lissome {
namespace {

constexpr int kTileRows = 6;
constexpr int64_t kChunkBytes = 512 * 1024;  // of x, per sweep over the panels

// The tile's place: its first row and output, and how many outputs really exist there.
struct TilePlace {
  int64_t row, output, outputs;
};

template <int Rows, int Vectors>
LISSOME_INLINE void multiply_tile(const LinearF32Call& call, const float* x, const float* weight,
                                  Floats (&sums)[Rows][Vectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[r][v] = zeros();
  }
  for (int64_t k = 0; k < call.inputs; ++k) {
    Floats columns[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) columns[v] = load(weight + v * Floats::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Floats value = fill(x[r * call.x_stride + k]);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] = multiply_add(value, columns[v], sums[r][v]);
    }
    weight += kLinearPanel;
  }
}

// One row: the sums of four steps of k run beside each other, else the latency of the additions would bind.
template <int Vectors>
LISSOME_INLINE void multiply_row(const LinearF32Call& call, const float* x, const float* weight,
                                 Floats (&sums)[1][Vectors]) {
  constexpr int kSteps = 8 / Vectors < 1 ? 1 : Vectors >= 4 ? 2 : 4;
  Floats partial[kSteps][Vectors];
#pragma GCC unroll 8
  for (int s = 0; s < kSteps; ++s) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) partial[s][v] = zeros();
  }
  int64_t k = 0;
  for (; k + kSteps <= call.inputs; k += kSteps) {
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
  for (; k < call.inputs; ++k, weight += kLinearPanel) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      partial[0][v] = multiply_add(fill(x[k]), load(weight + v * Floats::kWidth), partial[0][v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    sums[0][v] = partial[0][v];
#pragma GCC unroll 8
    for (int s = 1; s < kSteps; ++s) sums[0][v] = sums[0][v] + partial[s][v];
  }
}

// Any activation, any number of outputs: rows of finished sums through memory, out of line so that tiles stay small.
void finish_rows(const LinearF32Call& call, float* sums, int64_t sums_stride, int rows, TilePlace place) {
  for (int r = 0; r < rows; ++r) {
    float* row = sums + r * sums_stride;
    const int64_t at = place.row + r;
    const float* residual = call.residual_place == ResidualPlace::none
                                ? nullptr
                                : call.residual + at * call.residual_stride + place.output;
    const float* bias = call.bias ? call.bias + place.output : nullptr;
    float* y = call.y + at * call.y_stride + place.output;
    for (int64_t n = 0; n < place.outputs; n += Floats::kWidth) {
      const int64_t left = place.outputs - n < Floats::kWidth ? place.outputs - n : Floats::kWidth;
      Floats value = load(row + n);
      if (bias) value = value + load_first(bias + n, left);
      if (residual && call.residual_place == ResidualPlace::before_activation) {
        value = value + load_first(residual + n, left);
      }
      value = activate_vector(call.epilogue, value);
      if (residual && call.residual_place == ResidualPlace::after_activation) {
        value = value + load_first(residual + n, left);
      }
      store_first(y + n, value, left);
    }
  }
}

template <int Rows, int Vectors>
LISSOME_INLINE void store_tile(const LinearF32Call& call, TilePlace place, Floats (&sums)[Rows][Vectors]) {
  constexpr int64_t kWidth = Vectors * Floats::kWidth;
  const Activation activation = call.epilogue.activation;
  const bool simple = activation == Activation::none || activation == Activation::relu;
  if (!simple || place.outputs < kWidth || call.residual_place == ResidualPlace::after_activation) {
    alignas(64) float spill[Rows * kWidth];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) store(spill + r * kWidth + v * Floats::kWidth, sums[r][v]);
    }
    finish_rows(call, spill, kWidth, Rows, place);
    return;
  }
  const Floats floor = fill(activation == Activation::relu ? 0.0f : -__builtin_inff());
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    const int64_t at = place.row + r;
    float* y = call.y + at * call.y_stride + place.output;
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      Floats value = sums[r][v];
      if (call.bias) value = value + load(call.bias + place.output + v * Floats::kWidth);
      if (call.residual_place == ResidualPlace::before_activation) {
        value = value + load(call.residual + at * call.residual_stride + place.output + v * Floats::kWidth);
      }
      store(y + v * Floats::kWidth, max_with(floor, value));
    }
  }
}

template <int Rows, int Vectors>
void run_tile(const LinearF32Call& call, TilePlace place) {
  const float* x = call.x + place.row * call.x_stride;
  const float* weight =
      call.weight + place.output / kLinearPanel * kLinearPanel * call.inputs + place.output % kLinearPanel;
  Floats sums[Rows][Vectors];
  if constexpr (Rows == 1) {
    multiply_row<Vectors>(call, x, weight, sums);
  } else {
    multiply_tile<Rows, Vectors>(call, x, weight, sums);
  }
  store_tile<Rows, Vectors>(call, place, sums);
}

template <int Vectors>
void run_rows(const LinearF32Call& call, TilePlace place, int64_t rows) {
  for (; rows >= kTileRows; rows -= kTileRows, place.row += kTileRows) run_tile<kTileRows, Vectors>(call, place);
  switch (rows) {
    case 5: run_tile<5, Vectors>(call, place); break;
    case 4: run_tile<4, Vectors>(call, place); break;
    case 3: run_tile<3, Vectors>(call, place); break;
    case 2: run_tile<2, Vectors>(call, place); break;
    case 1: run_tile<1, Vectors>(call, place); break;
    default: break;
  }
}

// All rows of [begin, end) against outputs of one tile column.
void run_column(const LinearF32Call& call, int64_t output, Range rows) {
  const int64_t left = call.outputs - output;
  const TilePlace place = {rows.begin, output, left};
  const int64_t vectors = (left + Floats::kWidth - 1) / Floats::kWidth;
  TilePlace whole = place;
  whole.outputs = left < kTileVectors * Floats::kWidth ? left : kTileVectors * Floats::kWidth;
  const int64_t count = rows.end - rows.begin;
  if (vectors >= kTileVectors) return run_rows<kTileVectors>(call, whole, count);
  if constexpr (kTileVectors > 2) {
    if (vectors == 3) return run_rows<3>(call, whole, count);
    if (vectors == 2) return run_rows<2>(call, whole, count);
  }
  run_rows<1>(call, whole, count);
}

LISSOME_INLINE void run_linear_f32(const LinearF32Call& call, int part, int parts) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const int64_t columns = (call.outputs + kColumn - 1) / kColumn;
  const int64_t blocks = (call.rows + kTileRows - 1) / kTileRows;
  // Split whichever side leaves the parts more even; outputs when equal, so that each core keeps its own weights.
  const int64_t worst_columns = (columns + parts - 1) / parts * blocks;
  const int64_t worst_blocks = (blocks + parts - 1) / parts * columns;
  Range my_columns = {0, columns};
  Range my_rows = {0, call.rows};
  if (worst_columns <= worst_blocks) {
    my_columns = split_evenly(columns, part, parts);
  } else {
    my_rows = split_by_unit(call.rows, kTileRows, part, parts);
  }
  int64_t chunk = kChunkBytes / (call.inputs * static_cast<int64_t>(sizeof(float)) + 1) / kTileRows * kTileRows;
  if (chunk < 4 * kTileRows) chunk = 4 * kTileRows;
  for (int64_t row = my_rows.begin; row < my_rows.end; row += chunk) {
    const Range rows = {row, row + chunk < my_rows.end ? row + chunk : my_rows.end};
    for (int64_t column = my_columns.begin; column < my_columns.end; ++column) {
      run_column(call, column * kColumn, rows);
    }
  }
}

}  // namespace
}  // namespace lissome

// The heart of the int8 products, over Ints: as tile_f32_body.h, with four inputs to a step and sums in s32 that are
// scaled, activated and perhaps quantized again on the way out.
#pragma once

#include "lissome/kernel/vector_int8.h"

#include "lissome/kernel/vector_bf16.h"

#include "lissome/kernel/activation_body.h"
#include "lissome/kernel/runs_u8s8.h"
#include "lissome/kernel/split.h"

namespace lissome {
namespace {

struct TilePlace {
  int64_t row, output, outputs;
};

template <int Rows, int Vectors>
LISSOME_INLINE void clear_sums(Ints (&sums)[Rows][Vectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[r][v] = zero_ints();
  }
}

LISSOME_INLINE int32_t load_four(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return four;
}

// The last one to three inputs: nothing is read beyond them.
LISSOME_INLINE int32_t load_some(const uint8_t* p, int64_t count) {
  uint32_t some = 0;
  for (int64_t i = 0; i < count; ++i) some |= static_cast<uint32_t>(p[i]) << (8 * i);
  return static_cast<int32_t>(some);
}

template <int Rows, int Vectors>
LISSOME_INLINE void add_step(const int32_t (&fours)[Rows], const int8_t* const (&weight)[Vectors], int64_t at,
                             Ints (&sums)[Rows][Vectors]) {
  Weights columns[Vectors];
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) columns[v] = load_weights(weight[v] + at);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    const Inputs x = broadcast_inputs(fours[r]);
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[r][v] = add_products(sums[r][v], x, columns[v]);
  }
}

// Where a tile is in its weights: bytes from the start of its columns, and fours left of the step.
struct WeightPlace {
  int64_t at, left;
};

template <int Vectors>
LISSOME_INLINE void find_columns(const int8_t* weight, const PanelU8S8& panel, int64_t output,
                                 const int8_t* (&columns)[Vectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) columns[v] = weight + output_offset(panel, output + v * Floats::kWidth);
}

// sums += rows[.][0..count) * the weights at `place`, which moves on.
template <int Rows, int Vectors>
LISSOME_INLINE void accumulate(const uint8_t* const (&rows)[Rows], const int8_t* const (&columns)[Vectors],
                               const PanelU8S8& panel, WeightPlace& place, int64_t count, Ints (&sums)[Rows][Vectors]) {
  int64_t k = 0;
  const auto move_on = [&](int64_t fours) {
    place.at += fours * 64, place.left -= fours;
    if (place.left == 0) place.at += panel.square, place.left = panel.step_fours;
  };
  while (k + 4 <= count) {
    const int64_t fours = (count - k) / 4 < place.left ? (count - k) / 4 : place.left;
    const int64_t end = k + 4 * fours;
    for (int64_t at = place.at; k < end; k += 4, at += 64) {
      int32_t x[Rows];
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) x[r] = load_four(rows[r] + k);
      add_step(x, columns, at, sums);
    }
    move_on(fours);
  }
  if (k < count) {
    int32_t x[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) x[r] = load_some(rows[r] + k, count - k);
    add_step(x, columns, place.at, sums);
    move_on(1);
  }
}

// Round half to even, zero point added; NaN becomes 0.
LISSOME_INLINE Floats quantize_vector(Floats y, float inverse, float zero) {
  const Floats low = fill(-zero), high = fill(255 - zero);
  // As the second operand of the maximum the bound wins over NaN.
  const Floats clamped = min_with(high, max_with(y * fill(inverse), low));
  return round_to_nearest(clamped) + fill(zero);
}

template <typename Store>
LISSOME_INLINE void finish_vector(const OutputU8S8& output, int64_t row, int64_t n, int64_t left, Ints sum,
                                  const Store& store) {
  const int32_t zero = output.row_scales ? output.row_zeros[row] : output.x_zero;
  sum = subtract(sum, multiply(fill_ints(zero), load_ints_first(output.weight_sums + n, left)));
  Floats multiplier = load_first(output.multiplier + n, left);
  if (output.row_scales) multiplier = multiplier * fill(output.row_scales[row]);
  const Floats bias = output.bias ? load_first(output.bias + n, left) : zeros();
  Floats y = multiply_add(to_floats(sum), multiplier, bias);
  const int64_t from = row * output.residual_stride + n;
  if (output.residual) y = y + load_first(output.residual + from, left);
  if (output.residual_bf16) y = y + load_first(output.residual_bf16 + from, left);
  if (output.residual_u8) {
    const Ints wide = load_u8_first(output.residual_u8 + from, left);
    y = multiply_add(to_floats(subtract(wide, fill_ints(output.residual_zero))), fill(output.residual_scale), y);
  }
  store(y);
}

// Finished rows through memory, out of line so that tiles stay small.
void finish_rows(const OutputU8S8& output, const int32_t* sums, int64_t sums_stride, int rows, TilePlace place) {
  const float zero = static_cast<float>(output.out_zero);
  for (int r = 0; r < rows; ++r) {
    const int64_t row = place.row + r, first = spread_row(output.spread, row) * output.y_stride;
    for (int64_t n = 0; n < place.outputs; n += Floats::kWidth) {
      const int64_t left = place.outputs - n < Floats::kWidth ? place.outputs - n : Floats::kWidth;
      finish_vector(output, row, place.output + n, left, load_ints(sums + r * sums_stride + n), [&](Floats y) {
        y = activate_vector(output.epilogue, y);
        const int64_t at = first + spread_output(output, place.output + n);
        if (output.narrows) {
          store_first(static_cast<uint16_t*>(output.y) + at, y, left);
        } else if (output.out_inverse == 0) {
          store_first(static_cast<float*>(output.y) + at, y, left);
        } else {
          store_u8_first(static_cast<uint8_t*>(output.y) + at, quantize_vector(y, output.out_inverse, zero), left);
        }
      });
    }
  }
}

template <int Rows, int Vectors>
LISSOME_INLINE void store_tile(const OutputU8S8& output, TilePlace place, Ints (&sums)[Rows][Vectors]) {
  constexpr int64_t kWidth = Vectors * Floats::kWidth;
  alignas(64) int32_t spill[Rows * kWidth];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) store_ints(spill + r * kWidth + v * Floats::kWidth, sums[r][v]);
  }
  finish_rows(output, spill, kWidth, Rows, place);
}

#include "lissome/kernel/tile_loops_body.h"

}  // namespace
}  // namespace lissome

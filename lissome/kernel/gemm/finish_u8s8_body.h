// What follows the sums of a tile of int8 products, over Ints: scaled, activated and perhaps quantized again. What the
// rows of a tile share is read once, before them; the zero point of x is taken out before the products, by what the
// sums start from.
#pragma once

#include "lissome/kernel/isa/vector_int8.h"

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/quantize_body.h"
#include "lissome/kernel/gemm/runs_u8s8.h"

namespace lissome {
namespace {

struct TilePlace {
  int64_t row, output, outputs;
};

// Sums start from minus the zero point times the sums of the weights.
template <int Rows, int Vectors>
LISSOME_INLINE void start_sums(const OutputU8S8& output, TilePlace place, Ints (&sums)[Rows][Vectors]) {
  const int32_t* from = output.weight_sums + place.output;
  Ints weights[Vectors];
  if (place.outputs == Vectors * Floats::kWidth) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) weights[v] = load_ints(from + v * Floats::kWidth);
  } else {
    for (int v = 0; v < Vectors; ++v) {
      const int64_t left = place.outputs - v * Floats::kWidth;
      weights[v] = load_ints_first(from + v * Floats::kWidth, left < 0                ? 0
                                                              : left < Floats::kWidth ? left
                                                                                      : Floats::kWidth);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    const int32_t taken = output.row_scales ? output.row_zeros[place.row + r] : output.x_zero;
    const Ints zero = fill_ints(static_cast<int32_t>(0u - static_cast<uint32_t>(taken)));
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[r][v] = multiply(zero, weights[v]);
  }
}

// Several registers are whole ones, a single one may be the last of a row.
template <int Vectors, typename Item>
LISSOME_INLINE Floats load_outputs(const Item* from, int64_t left) {
  if constexpr (Vectors > 1) return load(from);
  return load_first(from, left < Floats::kWidth ? left : Floats::kWidth);
}

template <int Vectors>
LISSOME_INLINE void add_residuals(const OutputU8S8& output, int64_t from, int64_t left, Floats (&y)[Vectors]) {
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v, from += Floats::kWidth) {
    if (output.residual) y[v] = y[v] + load_outputs<Vectors>(output.residual + from, left);
    if (output.residual_bf16) y[v] = y[v] + load_outputs<Vectors>(output.residual_bf16 + from, left);
    if (output.residual_u8) {
      const uint8_t* bytes = output.residual_u8 + from;
      const Ints wide = Vectors > 1 ? load_u8(bytes) : load_u8_first(bytes, left);
      const Floats steps = to_floats(wide - fill_ints(output.residual_zero));
      y[v] = multiply_add(steps, fill(output.residual_scale), y[v]);
    }
  }
}

template <int Vectors>
LISSOME_INLINE void store_results(const OutputU8S8& output, int64_t at, int64_t left, const Floats (&y)[Vectors]) {
  if (output.out_inverse != 0) {
    uint8_t* to = static_cast<uint8_t*>(output.y) + at;
    if constexpr (Vectors > 1) {
      const Floats inverse = fill(output.out_inverse), highest = fill(static_cast<float>(255 - output.out_zero));
      Ints whole[Vectors];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) whole[v] = round_to_ints(min_with(highest, y[v] * inverse));
      store_u8(to, whole, output.out_zero);
    } else {
      store_first(to, quantize_vector(y[0], output.out_inverse, static_cast<float>(output.out_zero)), left);
    }
    return;
  }
  const auto store_floats = [&](auto* to) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      if constexpr (Vectors > 1) {
        store(to + v * Floats::kWidth, y[v]);
      } else {
        store_first(to, y[0], left);
      }
    }
  };
  if (output.narrows) {
    store_floats(static_cast<uint16_t*>(output.y) + at);
  } else {
    store_floats(static_cast<float*>(output.y) + at);
  }
}

// Whether neighbouring results of a tile so wide lie beside each other.
LISSOME_INLINE bool lies_together(const OutputU8S8& output, int64_t width) {
  return output.spread.width == 0 || output.spread.outputs % width == 0;
}

// Rows of sums, `stride` apart, become results.
template <int Vectors, typename Function>
void finish_block(const OutputU8S8& output, const int32_t* sums, int64_t stride, int rows, TilePlace place,
                  const Function& activation) {
  const int64_t left = place.outputs < Floats::kWidth ? place.outputs : Floats::kWidth;
  const int64_t y_offset = spread_output(output, place.output);
  Floats multiplier[Vectors], bias[Vectors];
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    const int64_t n = place.output + v * Floats::kWidth;
    multiplier[v] = load_outputs<Vectors>(output.multiplier + n, left);
    bias[v] = output.bias ? load_outputs<Vectors>(output.bias + n, left) : zeros();
  }
  for (int64_t row = place.row; row < place.row + rows; ++row, sums += stride) {
    Floats y[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const Floats sum = to_floats(load_ints(sums + v * Floats::kWidth));
      y[v] =
          multiply_add(sum, output.row_scales ? multiplier[v] * fill(output.row_scales[row]) : multiplier[v], bias[v]);
    }
    add_residuals(output, row * output.residual_stride + place.output, left, y);
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) y[v] = activation(y[v]);
    store_results(output, spread_row(output.spread, row) * output.y_stride + y_offset, left, y);
  }
}

// Out of line, so that tiles stay small. `sums` are rows of `vectors` registers each.
void finish_rows(const OutputU8S8& output, const int32_t* sums, int vectors, int rows, TilePlace place) {
  const int64_t stride = vectors * Floats::kWidth;
  const bool whole = place.outputs == stride && lies_together(output, stride);
  choose_activation(output.epilogue, [&](const auto& activation) {
    if (whole && vectors == kTileVectors) {
      return finish_block<kTileVectors>(output, sums, stride, rows, place, activation);
    }
    for (int64_t n = 0; n < place.outputs; n += Floats::kWidth) {
      const TilePlace at = {place.row, place.output + n, place.outputs - n};
      finish_block<1>(output, sums + n, stride, rows, at, activation);
    }
  });
}

// Whether a tile gives bytes that need nothing of their rows but bytes, and no activation beyond bounds: most of a
// network that stays in u8.
LISSOME_INLINE bool gives_plain_bytes(const OutputU8S8& output) {
  const Activation activation = output.epilogue.activation;
  return output.out_inverse != 0 && !output.row_scales && !output.residual && !output.residual_bf16 &&
         (activation == Activation::none || activation == Activation::relu || activation == Activation::clamp);
}

// A tile whose results are bytes, finished in its registers.
template <int Rows, int Vectors>
LISSOME_INLINE void store_bytes(const OutputU8S8& output, TilePlace place, Ints (&sums)[Rows][Vectors]) {
  // Bytes stop at their zero point by themselves.
  const bool stops = output.epilogue.activation == Activation::relu && output.out_zero != 0;
  const bool clamps = output.epilogue.activation == Activation::clamp;
  const Floats inverse = fill(output.out_inverse), highest = fill(static_cast<float>(255 - output.out_zero));
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    const int64_t n = place.output + v * Floats::kWidth;
    const Floats multiplier = load(output.multiplier + n), bias = output.bias ? load(output.bias + n) : zeros();
    Floats y[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) y[r] = multiply_add(to_floats(sums[r][v]), multiplier, bias);
    if (output.residual_u8) {
      const Ints zero = fill_ints(output.residual_zero);
      const Floats scale = fill(output.residual_scale);
      const uint8_t* from = output.residual_u8 + place.row * output.residual_stride + n;
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r, from += output.residual_stride) {
        y[r] = multiply_add(to_floats(load_u8(from) - zero), scale, y[r]);
      }
    }
    if (stops) {
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) y[r] = max_with(zeros(), y[r]);
    }
    if (clamps) {
      const Floats low = fill(output.epilogue.alpha), high = fill(output.epilogue.beta);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) y[r] = min_with(high, max_with(low, y[r]));
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) sums[r][v] = round_to_ints(min_with(highest, y[r] * inverse));
  }
  uint8_t* to = static_cast<uint8_t*>(output.y);
  const bool together = Vectors == 2 || lies_together(output, Vectors * Floats::kWidth);
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
    uint8_t* row = to + spread_row(output.spread, place.row + r) * output.y_stride;
    if (together) {
      store_u8(row + spread_output(output, place.output), sums[r], output.out_zero);
      continue;
    }
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; v += 2) {
      const Ints pair[2] = {sums[r][v], sums[r][v + 1]};
      store_u8(row + spread_output(output, place.output + v * Floats::kWidth), pair, output.out_zero);
    }
  }
}

template <int Rows, int Vectors>
LISSOME_INLINE void store_tile(const OutputU8S8& output, TilePlace place, Ints (&sums)[Rows][Vectors]) {
  constexpr int64_t kWidth = Vectors * Floats::kWidth;
  if constexpr (Vectors % 2 == 0) {
    if (place.outputs == kWidth && gives_plain_bytes(output)) {
      return store_bytes(output, place, sums);
    }
  }
  alignas(64) int32_t spill[Rows * kWidth];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) store_ints(spill + r * kWidth + v * Floats::kWidth, sums[r][v]);
  }
  finish_rows(output, spill, Vectors, Rows, place);
}

}  // namespace
}  // namespace lissome

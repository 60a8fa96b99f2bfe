// The bf16 linear on tile registers: blocks of 32 rows and 32 outputs, four tiles of sums, a step of 32 inputs at a
// time.
#pragma once

#include "lissome/kernel/linear_bf16_rows_body.h"
#include "lissome/kernel/tiles_bf16.h"

namespace lissome {
namespace {

constexpr int64_t kBlockRows = 32, kTileSide = 16;
constexpr int64_t kSquare = kTileSide * kBf16Step;  // elements of a tile of weights

// Tiles 0-3 hold sums, 4 and 5 rows of x, 6 and 7 weights. A block of at most 16 rows has no lower tiles: its second
// pair of sums takes every other step, since sums that wait for each other would leave the multiplier idle.
TileShapes shape_tiles(int64_t rows) {
  const int64_t upper = rows < kTileSide ? rows : kTileSide;
  const int64_t lower = rows > kTileSide ? rows - kTileSide : upper;
  TileShapes shapes;
  for (const int tile : {0, 1, 4}) shapes.rows[tile] = static_cast<uint8_t>(upper);
  for (const int tile : {2, 3, 5}) shapes.rows[tile] = static_cast<uint8_t>(lower);
  for (const int tile : {6, 7}) shapes.rows[tile] = kTileSide;
  for (int tile = 0; tile < 8; ++tile) shapes.row_bytes[tile] = 64;
  return shapes;
}

void multiply_block(const uint16_t* x, int64_t stride, const uint16_t* weight, int64_t steps, float* sums) {
  const int64_t row_bytes = stride * 2;
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  for (int64_t step = 0; step < steps; ++step, x += kBf16Step, weight += 2 * kSquare) {
    load_tile<4>(x, row_bytes);
    load_tile<6>(weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
    load_tile<5>(x + kTileSide * stride, row_bytes);
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
}

// At most 16 rows.
void multiply_half_block(const uint16_t* x, int64_t stride, const uint16_t* weight, int64_t steps, float* sums) {
  const int64_t row_bytes = stride * 2;
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  int64_t step = 0;
  for (; step + 2 <= steps; step += 2, x += 2 * kBf16Step, weight += 4 * kSquare) {
    load_tile<4>(x, row_bytes);
    load_tile<6>(weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
    load_tile<5>(x + kBf16Step, row_bytes);
    load_tile<6>(weight + 2 * kSquare, 64);
    multiply_tiles<2, 5, 6>();
    load_tile<7>(weight + 3 * kSquare, 64);
    multiply_tiles<3, 5, 7>();
  }
  if (step < steps) {
    load_tile<4>(x, row_bytes);
    load_tile<6>(weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
  }
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
}

void add_halves(float* sums, int64_t rows) {
  for (int64_t i = 0; i < rows * kBf16Panel; i += Floats::kWidth)
    store(sums + i, load(sums + i) + load(sums + 512 + i));
}

LISSOME_INLINE void run_linear_bf16(const LinearBf16Call& call, int part, int parts) {
  const int64_t steps = count_bf16_steps(call.inputs);
  alignas(64) float sums[kBlockRows * kBf16Panel];
  int64_t shaped = 0;  // rows of a block that the tiles are shaped for
  const auto multiply = [&](StagedRows<uint16_t> x, Range rows, int64_t panel) {
    const int64_t output = panel * kBf16Panel, left = call.outputs - output;
    const uint16_t* weight = call.weight + output * steps * kBf16Step;
    for (int64_t row = rows.begin; row < rows.end; row += kBlockRows) {
      const int64_t count = rows.end - row < kBlockRows ? rows.end - row : kBlockRows;
      const uint16_t* first = x.first + (row - rows.begin) * x.stride;
      if (count != shaped) load_tile_shapes(shape_tiles(shaped = count));
      if (count > kTileSide) {
        multiply_block(first, x.stride, weight, steps, sums);
      } else {
        multiply_half_block(first, x.stride, weight, steps, sums);
        add_halves(sums, count);
      }
      finish_rows(call, sums, kBf16Panel, {row, output, count, left < kBf16Panel ? left : kBf16Panel});
    }
  };
  run_share<uint16_t>(call, share_bf16(call, kBlockRows, part, parts), part, multiply);
  release_tiles();
}

}  // namespace
}  // namespace lissome

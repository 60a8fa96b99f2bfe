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

// A whole row of a block at once: with 64 bytes of results, one line of the cache.
template <typename Function>
LISSOME_INLINE void finish_whole_row(const LinearBf16Call& call, const float* sums, const float* bias, int64_t output,
                                     int64_t row, const Function& activation) {
  Floats left = load(sums) + load(bias), right = load(sums + 16) + load(bias + 16);
  if (call.residual_place == ResidualPlace::none) {
    left = activation(left), right = activation(right);
  } else {
    const uint16_t* residual = call.residual + row * call.residual_stride + output;
    if (call.residual_place == ResidualPlace::before_activation) {
      left = activation(left + load(residual)), right = activation(right + load(residual + 16));
    } else {
      left = activation(left) + load(residual), right = activation(right) + load(residual + 16);
    }
  }
  _mm512_storeu_si512(call.y + row * call.y_stride + output,
                      reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(right.v, left.v)));
}

// A block whose sums are done. Its epilogue runs a few rows at a time between the steps of the next block: the vector
// units have nothing else to do while tiles are multiplied.
template <typename Function>
struct PendingBlock {
  const LinearBf16Call& call;
  const Function& activation;
  const float* sums = nullptr;
  Bf16Place place = {};
  int64_t next = 0;
  alignas(64) float bias[kBf16Panel] = {};  // of the block's outputs

  LISSOME_INLINE void advance(int64_t rows) {
    const int64_t end = next + rows < place.rows ? next + rows : place.rows;
    if (place.outputs == kBf16Panel) {
      for (; next < end; ++next) {
        finish_whole_row(call, sums + next * kBf16Panel, bias, place.output, place.row + next, activation);
      }
    }
    for (; next < end; ++next) {
      finish_row(call, sums + next * kBf16Panel, place, place.row + next, activation);
    }
  }

  void start(const float* block, Bf16Place at) {
    sums = block, place = at, next = 0;
    if (call.bias == nullptr || at.outputs < kBf16Panel) return;
    store(bias, load(call.bias + at.output)), store(bias + 16, load(call.bias + at.output + 16));
  }
};

struct BlockProduct {
  const uint16_t *x, *weight;
  int64_t x_stride, steps;
};

template <typename Pending>
LISSOME_INLINE void multiply_block(BlockProduct p, float* sums, Pending& pending) {
  const int64_t row_bytes = p.x_stride * 2, pace = (kBlockRows + p.steps - 1) / p.steps;
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  for (int64_t step = 0; step < p.steps; ++step, p.x += kBf16Step, p.weight += 2 * kSquare) {
    load_tile<4>(p.x, row_bytes);
    load_tile<6>(p.weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(p.weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
    load_tile<5>(p.x + kTileSide * p.x_stride, row_bytes);
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
    pending.advance(pace);
  }
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
}

// At most 16 rows.
template <typename Pending>
LISSOME_INLINE void multiply_half_block(BlockProduct p, float* sums, int64_t rows, Pending& pending) {
  const int64_t row_bytes = p.x_stride * 2, pace = (2 * kTileSide + p.steps - 1) / p.steps;
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  int64_t step = 0;
  for (; step + 2 <= p.steps; step += 2, p.x += 2 * kBf16Step, p.weight += 4 * kSquare) {
    load_tile<4>(p.x, row_bytes);
    load_tile<6>(p.weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(p.weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
    load_tile<5>(p.x + kBf16Step, row_bytes);
    load_tile<6>(p.weight + 2 * kSquare, 64);
    multiply_tiles<2, 5, 6>();
    load_tile<7>(p.weight + 3 * kSquare, 64);
    multiply_tiles<3, 5, 7>();
    pending.advance(pace);
  }
  if (step < p.steps) {
    load_tile<4>(p.x, row_bytes);
    load_tile<6>(p.weight, 64);
    multiply_tiles<0, 4, 6>();
    load_tile<7>(p.weight + kSquare, 64);
    multiply_tiles<1, 4, 7>();
  }
  store_tile<0>(sums, 128), store_tile<1>(sums + 16, 128);
  store_tile<2>(sums + 512, 128), store_tile<3>(sums + 528, 128);
  for (int64_t i = 0; i < rows * kBf16Panel; i += Floats::kWidth)
    store(sums + i, load(sums + i) + load(sums + 512 + i));
}

template <typename Function>
void run_blocks(const LinearBf16Call& call, int part, int parts, const Function& activation) {
  const int64_t steps = count_bf16_steps(call.inputs);
  alignas(64) float sums[2][kBlockRows * kBf16Panel];
  int turn = 0;
  int64_t shaped = 0;  // rows of a block that the tiles are shaped for
  PendingBlock<Function> pending{call, activation};
  const auto multiply = [&](StagedRows<uint16_t> x, Range rows, int64_t panel) {
    const int64_t output = panel * kBf16Panel, left = call.outputs - output;
    const uint16_t* weight = call.weight + output * steps * kBf16Step;
    for (int64_t row = rows.begin; row < rows.end; row += kBlockRows, turn = 1 - turn) {
      const int64_t count = rows.end - row < kBlockRows ? rows.end - row : kBlockRows;
      const BlockProduct product = {x.first + (row - rows.begin) * x.stride, weight, x.stride, steps};
      if (count != shaped) load_tile_shapes(shape_tiles(shaped = count));
      if (count > kTileSide) {
        multiply_block(product, sums[turn], pending);
      } else {
        multiply_half_block(product, sums[turn], count, pending);
      }
      pending.advance(kBlockRows);
      pending.start(sums[turn], {row, output, count, left < kBf16Panel ? left : kBf16Panel});
    }
  };
  run_share<uint16_t>(call, share_bf16(call, kBlockRows, part, parts), part, multiply);
  pending.advance(kBlockRows);
  release_tiles();
}

LISSOME_INLINE void run_linear_bf16(const LinearBf16Call& call, int part, int parts) {
  choose_activation(call.epilogue, [&](const auto& activation) { run_blocks(call, part, parts, activation); });
}

}  // namespace
}  // namespace lissome

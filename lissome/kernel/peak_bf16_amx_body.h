// Products of bf16 tiles, summed in f32, at the rate of the tile registers.
#pragma once

#include "lissome/kernel/vector_bf16.h"

#include "lissome/kernel/peak.h"
#include "lissome/kernel/tiles_bf16.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_peak_multiply_bf16(const PeakCall& call, int part, int) {
  // Numbers, not zeros: a processor may well run faster while it multiplies nothing.
  alignas(64) uint16_t numbers[512];
  for (int i = 0; i < 512; i += Floats::kWidth) store(numbers + i, fill(0.01F * static_cast<float>(i + 1)));
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.rows[tile] = 16, shapes.row_bytes[tile] = 64;
  load_tile_shapes(shapes);
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  load_tile<4>(numbers, 64), load_tile<5>(numbers, 64), load_tile<6>(numbers, 64), load_tile<7>(numbers, 64);
  for (int64_t round = 0; round < call.rounds; ++round) {
    multiply_tiles<0, 4, 6>();
    multiply_tiles<1, 4, 7>();
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
  alignas(64) float sums[256];
  store_tile<0>(sums, 64);
  release_tiles();
  call.sinks[part] = sums[0];
  call.done[part] = call.rounds * 4 * 16 * 16 * 32;
}

}  // namespace
}  // namespace lissome

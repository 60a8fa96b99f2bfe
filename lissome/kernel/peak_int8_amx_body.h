// Products of tiles of u8 with tiles of s8, summed in s32, at the rate of the tile registers.
#pragma once

#include "lissome/kernel/vector.h"

#include "lissome/kernel/peak.h"
#include "lissome/kernel/tiles_u8s8.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_peak_multiply_u8s8(const PeakCall& call, int part, int) {
  // Numbers, not zeros: a processor may well run faster while it multiplies nothing.
  alignas(64) uint8_t numbers[1024];
  for (int i = 0; i < 1024; ++i) numbers[i] = static_cast<uint8_t>(i * 37 + part);
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.rows[tile] = 16, shapes.row_bytes[tile] = 64;
  load_tile_shapes(shapes);
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  load_tile<4>(numbers, 64), load_tile<5>(numbers, 64), load_tile<6>(numbers, 64), load_tile<7>(numbers, 64);
  for (int64_t round = 0; round < call.rounds; ++round) {
    multiply_byte_tiles<0, 4, 6>();
    multiply_byte_tiles<1, 4, 7>();
    multiply_byte_tiles<2, 5, 6>();
    multiply_byte_tiles<3, 5, 7>();
  }
  alignas(64) int32_t sums[256];
  store_tile<0>(sums, 64);
  release_tiles();
  call.sinks[part] = static_cast<float>(sums[0]);
  call.done[part] = call.rounds * 4 * 16 * 16 * 64;
}

}  // namespace
}  // namespace lissome

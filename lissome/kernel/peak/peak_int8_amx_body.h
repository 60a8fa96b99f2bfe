// Products of tiles of u8 with tiles of s8, summed in s32, at the rate of the tile registers.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/isa/tiles_u8s8.h"
#include "lissome/kernel/peak/peak_tiles.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_peak_multiply_u8s8(const PeakCall& call, int part, int) {
  // Numbers, not zeros: a processor may well run faster while it multiplies nothing.
  alignas(64) uint8_t numbers[1024];
  for (int i = 0; i < 1024; ++i) numbers[i] = static_cast<uint8_t>(i * 37 + part);
  measure_tile_products<int32_t>(call, part, numbers, 64, [] {
    multiply_byte_tiles<0, 4, 6>();
    multiply_byte_tiles<1, 4, 7>();
    multiply_byte_tiles<2, 5, 6>();
    multiply_byte_tiles<3, 5, 7>();
  });
}

}  // namespace
}  // namespace lissome

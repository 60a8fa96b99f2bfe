// Products of bf16 tiles, summed in f32, at the rate of the tile registers.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/peak/peak_tiles.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_peak_multiply_bf16(const PeakCall& call, int part, int) {
  // Numbers, not zeros: a processor may well run faster while it multiplies nothing.
  alignas(64) uint16_t numbers[512];
  for (int i = 0; i < 512; i += Floats::kWidth) store(numbers + i, fill(0.01F * static_cast<float>(i + 1)));
  measure_tile_products<float>(call, part, numbers, 32, [] {
    multiply_tiles<0, 4, 6>();
    multiply_tiles<1, 4, 7>();
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  });
}

}  // namespace
}  // namespace lissome

// Products at the rate of the tile registers, whatever the tiles hold. Static: see split.h.
#pragma once

#include "lissome/kernel/isa/tiles_bf16.h"
#include "lissome/kernel/peak/peak.h"

namespace lissome {
namespace {

// `numbers` fill a tile. multiply() adds the products of tiles 4 and 5 with 6 and 7 to tiles 0-3, a row of a tile
// having so many `inputs`. Sums are numbers of `Sum`.
template <typename Sum, typename Multiply>
inline __attribute__((always_inline)) void measure_tile_products(const PeakCall& call, int part, const void* numbers,
                                                                 int64_t inputs, const Multiply& multiply) {
  shape_full_tiles();
  clear_tile<0>(), clear_tile<1>(), clear_tile<2>(), clear_tile<3>();
  load_tile<4>(numbers, 64), load_tile<5>(numbers, 64), load_tile<6>(numbers, 64), load_tile<7>(numbers, 64);
  for (int64_t round = 0; round < call.rounds; ++round) multiply();
  alignas(64) Sum sums[kTileSide * kTileSide];
  store_tile<0>(sums, 64);
  release_tiles();
  call.sinks[part] = static_cast<float>(sums[0]);
  call.done[part] = call.rounds * 4 * kTileSide * kTileSide * inputs;
}

}  // namespace
}  // namespace lissome

// Tile registers of AMX, as inline assembler: g++ 12's own intrinsics let stores to memory pass the loads of tiles.
#pragma once

#include <cstdint>

namespace lissome {
namespace {

// What ldtilecfg reads.
struct TileShapes {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

inline void load_tile_shapes(const TileShapes& shapes) { __asm__ volatile("ldtilecfg %0" : : "m"(shapes) : "memory"); }
inline void release_tiles() { __asm__ volatile("tilerelease" : : : "memory"); }

template <int Tile>
inline void clear_tile() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(Tile));
}
template <int Tile>
inline void load_tile(const void* from, int64_t row_bytes) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(Tile) : "memory");
}
template <int Tile>
inline void store_tile(void* to, int64_t row_bytes) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(Tile) : "memory");
}
// sums += rows * columns, f32 from pairs of bf16.
template <int Sums, int Rows, int Columns>
inline void multiply_tiles() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(Rows), "i"(Columns));
}

}  // namespace
}  // namespace lissome

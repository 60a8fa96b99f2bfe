// Tile registers of AMX, as inline assembler: g++ 12's own intrinsics let stores to memory pass the loads of tiles.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace lissome {
namespace {

// What ldtilecfg reads.
struct TileShapes {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

constexpr int64_t kTileSide = 16, kBlockRows = 32;

inline void load_tile_shapes(const TileShapes& shapes) { __asm__ volatile("ldtilecfg %0" : : "m"(shapes) : "memory"); }
inline void release_tiles() { __asm__ volatile("tilerelease" : : : "memory"); }

// All tiles as large as can be.
inline void shape_full_tiles() {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.rows[tile] = kTileSide, shapes.row_bytes[tile] = 64;
  load_tile_shapes(shapes);
}
// For a block of at most kBlockRows rows and 32 outputs whose steps have so many fours of bytes. Tiles 0-3 hold sums, 4
// and 5 rows of x, 6 and 7 weights. A block of at most 16 rows has no lower tiles: its second pair of sums takes every
// other step, since sums that wait for each other would leave the multiplier idle.
inline void shape_block_tiles(int64_t rows, int64_t step_fours) {
  const int64_t upper = rows < kTileSide ? rows : kTileSide;
  const int64_t lower = rows > kTileSide ? rows - kTileSide : upper;
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.row_bytes[tile] = 64;
  for (const int tile : {0, 1, 4}) shapes.rows[tile] = static_cast<uint8_t>(upper);
  for (const int tile : {2, 3, 5}) shapes.rows[tile] = static_cast<uint8_t>(lower);
  for (const int tile : {4, 5}) shapes.row_bytes[tile] = static_cast<uint16_t>(4 * step_fours);
  for (const int tile : {6, 7}) shapes.rows[tile] = static_cast<uint8_t>(step_fours);
  load_tile_shapes(shapes);
}

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

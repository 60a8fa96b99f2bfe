// Products of bytes on the tile registers of tiles_bf16.h.
#pragma once

#include "lissome/kernel/isa/tiles_bf16.h"

namespace lissome {
namespace {

// sums += rows * columns, s32 from fours of u8 (rows) and s8 (columns).
template <int Sums, int Rows, int Columns>
inline void multiply_byte_tiles() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sums), "i"(Rows), "i"(Columns));
}

}  // namespace
}  // namespace lissome

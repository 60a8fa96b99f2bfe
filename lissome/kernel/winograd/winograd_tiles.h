// Where the tiles of a Winograd convolution lie. Static: see split.h.
#pragma once

#include "lissome/kernel/winograd/winograd_f32.h"

namespace lissome {
namespace {

struct TileCounts {
  int64_t batch, down, across;
  inline __attribute__((always_inline)) int64_t all() const { return batch * down * across; }
};

inline __attribute__((always_inline)) TileCounts count_tiles(const Window& w, int64_t tile) {
  return {w.batch, (w.out_height + tile - 1) / tile, (w.out_width + tile - 1) / tile};
}

// The image and the first output of a tile.
struct TileCorner {
  int64_t image, top, left;
};

inline __attribute__((always_inline)) TileCorner find_corner(const TileCounts& counts, int64_t tile, int64_t index) {
  return {index / counts.across / counts.down, index / counts.across % counts.down * tile,
          index % counts.across * tile};
}

// The channels of input (i, j) of a tile; zeros outside of x.
template <typename Call>
inline __attribute__((always_inline)) auto find_input(const Call& call, const TileCorner& corner, int64_t i,
                                                      int64_t j) {
  const Window& w = call.window;
  const int64_t h = corner.top - w.pad_height + i, v = corner.left - w.pad_width + j;
  const bool inside = static_cast<uint64_t>(h) < static_cast<uint64_t>(w.height) &&
                      static_cast<uint64_t>(v) < static_cast<uint64_t>(w.width);
  return inside ? call.x + ((corner.image * w.height + h) * w.width + v) * call.in_channels : call.zeros;
}

// Elements from one point of the transform to the next in scratch. Not a multiple of 4 KiB, where the first-level cache
// would keep few of them.
inline __attribute__((always_inline)) int64_t point_stride(int64_t block, int64_t channels) {
  return block * channels + 16;
}
// The same for the bytes of winograd_u8s8.h: of 16-bit inputs, and of 32-bit sums of 32 outputs.
inline __attribute__((always_inline)) int64_t words_stride(const WinogradShape& shape) {
  return shape.block * shape.in_channels + 32;
}
inline __attribute__((always_inline)) int64_t sums_stride(const WinogradShape& shape) { return shape.block * 32 + 16; }

}  // namespace
}  // namespace lissome

// What packing and the tiles of the int8 convolution of small groups agree on. Static: see split.h.
#pragma once

#include "lissome/kernel/depthwise/grouped_u8s8.h"

namespace lissome {
namespace {

constexpr int64_t kGroupedPixels = 8;             // most of a tile, beside each other in a line of y
constexpr int64_t kGroupedLines = 16;             // most rows of a window
constexpr int64_t kGroupedBytes = 16 * 1024;      // of x, laid beside each other for a tile
constexpr int64_t kGroupedFour = 4 * kU8S8Panel;  // bytes of weights

// A group of two shares its four with its neighbour.
inline int64_t count_fours(int64_t group) { return group < 4 ? 1 : group / 4; }
inline int64_t grouped_columns(const Window& w, int64_t pixels) {
  return (pixels - 1) * w.stride_width + (w.kernel_width - 1) * w.dilation_width + 1;
}
inline int64_t grouped_panel_bytes(const Window& w, int64_t group) {
  return w.kernel_height * w.kernel_width * count_fours(group) * kGroupedFour;
}

}  // namespace
}  // namespace lissome

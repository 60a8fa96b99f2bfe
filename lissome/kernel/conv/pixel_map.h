// Where the results of a product over pixels belong. Positions are counted along lines as x is staged, which may be
// longer than those of y (padding lies between them) and more (between images); transposed convolutions leave out
// pixels of y. Static: see split.h.
#pragma once

#include <cstdint>

namespace lissome {
namespace {

struct PixelMap {
  int64_t first = 0;                                  // added to positions
  int64_t pitch = 0;                                  // positions from line to line; 0: a position is a row of y
  int64_t lines = 0;                                  // from image to image
  int64_t width = 0, height = 0;                      // pixels of a line and lines of an image that are results
  int64_t base = 0, image = 0, line = 0, column = 1;  // rows of y: the first, from image to image, line to line, ...
};

// The rows of y of `count` positions, -1 for those that are none.
inline void find_rows(const PixelMap& map, int64_t position, int64_t count, int64_t* rows) {
  position += map.first;
  if (map.pitch == 0) {
    for (int64_t i = 0; i < count; ++i) rows[i] = position + i;
    return;
  }
  int64_t ow = position % map.pitch, oh = position / map.pitch % map.lines, n = position / map.pitch / map.lines;
  for (int64_t i = 0; i < count;) {
    const int64_t left = map.pitch - ow < count - i ? map.pitch - ow : count - i;
    const int64_t results = oh < map.height && ow < map.width ? map.width - ow : 0, end = i + left;
    const int64_t inside = i + (results < left ? results : left);
    int64_t row = map.base + n * map.image + oh * map.line + ow * map.column;
    for (; i < inside; ++i, row += map.column) rows[i] = row;
    for (; i < end; ++i) rows[i] = -1;
    ow = 0;
    if (++oh == map.lines) oh = 0, ++n;
  }
}

}  // namespace
}  // namespace lissome

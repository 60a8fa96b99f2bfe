// How the parts of a call share its work. Everything here is static: kernel files are compiled for different
// instruction sets, and a shared inline function could end up in the wrong one.
#pragma once

#include <cstdint>

namespace lissome {

struct Range {
  int64_t begin, end;
};

static inline Range split_evenly(int64_t count, int part, int parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// A share of `count`, cut at multiples of `unit`.
[[maybe_unused]] static inline Range split_by_unit(int64_t count, int64_t unit, int part, int parts) {
  const Range units = split_evenly((count + unit - 1) / unit, part, parts);
  const int64_t end = units.end * unit;
  return {units.begin * unit, end < count ? end : count};
}

// run(count, tiles): so many tiles of so many rows each, as even as can be, `most` at most. A division and a choice of
// the tile for each of them would take as long as a short tile.
template <typename Function>
static inline __attribute__((always_inline)) void for_even_tiles(int64_t rows, int64_t most, const Function& run) {
  if (rows <= 0) return;
  const int64_t tiles = (rows + most - 1) / most, few = rows / tiles, larger = rows - few * tiles;
  if (larger > 0) run(few + 1, larger);
  run(few, tiles - larger);
}

// Whether parts share the columns of weights, or the rows of x. Whichever side leaves the parts more even; the columns
// when equal, so that each core keeps its own weights. Where weights have no more bytes than x it is the rows, up to a
// sixteenth less even: a core then reads the rows that it wrote in the step before, and those of another core may lie
// behind another last-level cache. Counts in units of the side.
[[maybe_unused]] static inline bool shares_columns(int64_t rows, int64_t columns, int parts, int64_t x_bytes,
                                                   int64_t weight_bytes) {
  const int64_t by_columns = (columns + parts - 1) / parts * rows, by_rows = (rows + parts - 1) / parts * columns;
  return weight_bytes > x_bytes ? by_columns <= by_rows : by_columns + by_columns / 16 < by_rows;
}

}  // namespace lissome

// The loops over tiles of int8. Included inside the anonymous namespace of tile_u8s8_body.h, after kTileRows,
// kTileVectors, Floats and TilePlace: every kernel file gets its own.

// Rows of [begin, end) against one column of tiles, `outputs` wide. `Kernel::run<Rows, Vectors>(call, place)` does a
// tile.
template <typename Kernel, int Vectors, typename Call>
void run_tile_rows(const Call& call, TilePlace place, int64_t rows) {
  for (; rows >= kTileRows; rows -= kTileRows, place.row += kTileRows) {
    Kernel::template run<kTileRows, Vectors>(call, place);
  }
  switch (rows) {
    case 5: Kernel::template run<5, Vectors>(call, place); break;
    case 4: Kernel::template run<4, Vectors>(call, place); break;
    case 3: Kernel::template run<3, Vectors>(call, place); break;
    case 2: Kernel::template run<2, Vectors>(call, place); break;
    case 1: Kernel::template run<1, Vectors>(call, place); break;
    default: break;
  }
}

template <typename Kernel, typename Call>
void run_tile_column(const Call& call, int64_t output, int64_t outputs, Range rows) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const int64_t left = outputs - output;
  const int64_t vectors = (left + Floats::kWidth - 1) / Floats::kWidth;
  const TilePlace place = {rows.begin, output, left < kColumn ? left : kColumn};
  const int64_t count = rows.end - rows.begin;
  if (vectors >= kTileVectors) return run_tile_rows<Kernel, kTileVectors>(call, place, count);
  if constexpr (kTileVectors > 2) {
    if (vectors == 3) return run_tile_rows<Kernel, 3>(call, place, count);
    if (vectors == 2) return run_tile_rows<Kernel, 2>(call, place, count);
  }
  run_tile_rows<Kernel, 1>(call, place, count);
}

// The share of one part. Rows are taken in chunks of `chunk`, so that they stay in cache from column to column.
template <typename Kernel, typename Call>
LISSOME_INLINE void run_tiles(const Call& call, int64_t rows, int64_t outputs, int64_t chunk, int part, int parts) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const int64_t columns = (outputs + kColumn - 1) / kColumn;
  const int64_t blocks = (rows + kTileRows - 1) / kTileRows;
  // Split whichever side leaves the parts more even; outputs when equal, so that each core keeps its own weights.
  const int64_t worst_columns = (columns + parts - 1) / parts * blocks;
  const int64_t worst_blocks = (blocks + parts - 1) / parts * columns;
  Range my_columns = {0, columns};
  Range my_rows = {0, rows};
  if (worst_columns <= worst_blocks) {
    my_columns = split_evenly(columns, part, parts);
  } else {
    my_rows = split_by_unit(rows, kTileRows, part, parts);
  }
  chunk = chunk / kTileRows * kTileRows;
  if (chunk < 4 * kTileRows) chunk = 4 * kTileRows;
  for (int64_t row = my_rows.begin; row < my_rows.end; row += chunk) {
    const Range taken = {row, row + chunk < my_rows.end ? row + chunk : my_rows.end};
    for (int64_t column = my_columns.begin; column < my_columns.end; ++column) {
      run_tile_column<Kernel>(call, column * kColumn, outputs, taken);
    }
  }
}

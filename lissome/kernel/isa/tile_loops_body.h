// The loops over tiles of int8. Included inside the anonymous namespace of tile_u8s8_body.h, after kTileRows,
// kTileVectors, Floats and TilePlace: every kernel file gets its own.

// The weights of column `column`, if there is one before `end`.
struct NextWeights {
  const int8_t* weight;  // packed
  const PanelU8S8& panel;
  int64_t column, end;

  // Of the tiles that run meanwhile. A single one reads its weights as fast as they come, and columns narrower than a
  // panel find theirs near.
  LISSOME_INLINE Ahead share(int64_t tiles) const {
    constexpr int64_t kPanels = kTileVectors * Floats::kWidth / kU8S8Panel;
    const int64_t steps = panel.runs * panel.steps * tiles, lines = kPanels * panel.panel / 64;
    if (kPanels == 0 || column >= end || tiles < 2 || steps == 0) return {};
    return {reinterpret_cast<const char*>(weight + column * kPanels * panel.panel), (lines + steps - 1) / steps};
  }
};

// `tiles` of `rows` rows, at most `Rows`. `Kernel::run<Rows, Vectors>(call, place, ahead)` does one.
template <typename Kernel, int Vectors, int Rows, typename Call>
LISSOME_INLINE void choose_tiles(const Call& call, TilePlace place, int64_t rows, int64_t tiles, Ahead& ahead) {
  if constexpr (Rows > 1) {
    if (rows < Rows) return choose_tiles<Kernel, Vectors, Rows - 1>(call, place, rows, tiles, ahead);
  }
  for (; tiles > 0; --tiles, place.row += Rows) Kernel::template run<Rows, Vectors>(call, place, ahead);
}

// Rows against one column of tiles, as even as can be. Where one or two registers hold a row of a tile, there is room
// for more rows.
template <typename Kernel, int Vectors, typename Call>
void run_tile_rows(const Call& call, TilePlace place, int64_t rows, const NextWeights& next) {
  constexpr int kRows = Vectors <= 2 && kTileVectors > 2 ? 2 * kTileRows : kTileRows;
  Ahead ahead = next.share((rows + kRows - 1) / kRows);
  for_even_tiles(rows, kRows, [&](int64_t count, int64_t tiles) {
    choose_tiles<Kernel, Vectors, kRows>(call, place, count, tiles, ahead);
    place.row += tiles * count;
  });
}

template <typename Kernel, typename Call>
void run_tile_column(const Call& call, int64_t output, int64_t outputs, Range rows, const NextWeights& next) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const int64_t left = outputs - output;
  const int64_t vectors = (left + Floats::kWidth - 1) / Floats::kWidth;
  const TilePlace place = {rows.begin, output, left < kColumn ? left : kColumn};
  const int64_t count = rows.end - rows.begin;
  if (vectors >= kTileVectors) return run_tile_rows<Kernel, kTileVectors>(call, place, count, next);
  if constexpr (kTileVectors > 2) {
    if (vectors == 3) return run_tile_rows<Kernel, 3>(call, place, count, next);
    if (vectors == 2) return run_tile_rows<Kernel, 2>(call, place, count, next);
  }
  run_tile_rows<Kernel, 1>(call, place, count, next);
}

// The share of one part. Rows are taken in chunks of `chunk`, so that they stay in cache from column to column.
template <typename Kernel, typename Call>
LISSOME_INLINE void run_tiles(const Call& call, const PanelU8S8& panel, int64_t rows, int64_t outputs, int64_t chunk,
                              int part, int parts) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const int64_t columns = (outputs + kColumn - 1) / kColumn;
  const int64_t blocks = (rows + kTileRows - 1) / kTileRows;
  Range my_columns = {0, columns};
  Range my_rows = {0, rows};
  const int64_t row_bytes = 4 * panel.tap_fours;  // of x, and of the weights of an output
  if (shares_columns(blocks, columns, parts, rows * row_bytes, outputs * row_bytes)) {
    my_columns = split_evenly(columns, part, parts);
  } else {
    my_rows = split_by_unit(rows, kTileRows, part, parts);
  }
  chunk = chunk / kTileRows * kTileRows;
  if (chunk < 4 * kTileRows) chunk = 4 * kTileRows;
  for (int64_t row = my_rows.begin; row < my_rows.end; row += chunk) {
    const Range taken = {row, row + chunk < my_rows.end ? row + chunk : my_rows.end};
    for (int64_t column = my_columns.begin; column < my_columns.end; ++column) {
      const NextWeights next = {call.weight, panel, column + 1, my_columns.end};
      run_tile_column<Kernel>(call, column * kColumn, outputs, taken, next);
    }
  }
}

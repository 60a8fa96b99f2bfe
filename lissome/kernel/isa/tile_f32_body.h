// The heart of the f32 products, over Floats: a tile of up to 6 rows and kTileVectors registers of outputs stays in
// registers while x is read where it lies and a block of the weight panel streams from the second-level cache; then the
// tile is finished on the way out. Long sums are cut into blocks, whose panel stays in cache from tile to tile; the
// next block is fetched meanwhile. Shared by linear_f32_body.h, conv_f32_body.h, winograd and attention.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/linear_f32.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// The tile's place: its first row and output, and how many outputs really exist there.
struct TilePlace {
  int64_t row, output, outputs;
};

// What is read after this: fetched line by line, `lines` with every kFetchSteps products of the sums.
struct Ahead {
  const char* at = nullptr;
  const char* end = nullptr;  // about where it stops
  int64_t lines = 0;
};
constexpr int kFetchSteps = 4;

// The next `inputs` rows of a panel, fetched during so many visits of tiles that add `inputs` products each.
LISSOME_INLINE Ahead look_ahead(const float* next, int64_t inputs, int64_t visits) {
  constexpr int64_t kLines = kFetchSteps * kLinearPanel * static_cast<int64_t>(sizeof(float)) / 64;
  return {reinterpret_cast<const char*>(next), reinterpret_cast<const char*>(next + inputs * kLinearPanel),
          (kLines + visits - 1) / visits};
}
LISSOME_INLINE void stop_at_end(Ahead& ahead) {
  if (ahead.at >= ahead.end) ahead.lines = 0;
}

template <int Rows, int Vectors>
LISSOME_INLINE void clear_sums(Floats (&sums)[Rows][Vectors]) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < Vectors; ++v) sums[r][v] = zeros();
  }
}

template <int Rows, int Vectors>
LISSOME_INLINE void load_sums(const float* from, int64_t stride, Floats (&sums)[Rows][Vectors]) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < Vectors; ++v) sums[r][v] = load(from + r * stride + v * Floats::kWidth);
  }
}

template <int Rows, int Vectors>
LISSOME_INLINE void store_sums(float* to, int64_t stride, const Floats (&sums)[Rows][Vectors]) {
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 12
    for (int v = 0; v < Vectors; ++v) store(to + r * stride + v * Floats::kWidth, sums[r][v]);
  }
}

// sums += rows[.][k] * weight
template <int Rows, int Vectors>
LISSOME_INLINE void add_products(const float* const (&rows)[Rows], int64_t k, const float* weight,
                                 Floats (&sums)[Rows][Vectors]) {
  Floats columns[Vectors];
#pragma GCC unroll 12
  for (int v = 0; v < Vectors; ++v) columns[v] = load(weight + v * Floats::kWidth);
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    const Floats value = fill(rows[r][k]);
#pragma GCC unroll 12
    for (int v = 0; v < Vectors; ++v) add_product(value, columns[v], sums[r][v]);
  }
}

LISSOME_INLINE void fetch_ahead(Ahead& ahead) {
  for (int64_t i = 0; i < ahead.lines; ++i, ahead.at += 64) _mm_prefetch(ahead.at, _MM_HINT_T1);
}

// sums += rows[.][0..count) * weight[0..count)[panel]
template <int Rows, int Vectors>
LISSOME_INLINE void accumulate(const float* const (&rows)[Rows], const float* weight, int64_t count,
                               Floats (&sums)[Rows][Vectors], Ahead& ahead) {
  int64_t k = 0;
  for (; k + kFetchSteps <= count; k += kFetchSteps) {
    fetch_ahead(ahead);
#pragma GCC unroll 12
    for (int s = 0; s < kFetchSteps; ++s, weight += kLinearPanel) add_products(rows, k + s, weight, sums);
  }
  for (; k < count; ++k, weight += kLinearPanel) add_products(rows, k, weight, sums);
}

// One row: the sums of several steps of k run beside each other, else the latency of the additions would bind.
template <int Vectors>
LISSOME_INLINE void accumulate(const float* const (&rows)[1], const float* weight, int64_t count,
                               Floats (&sums)[1][Vectors], Ahead& ahead) {
  constexpr int kSums = Vectors >= 8 ? 1 : Vectors >= 4 ? 2 : 4;
  Floats partial[kSums][1][Vectors];
#pragma GCC unroll 12
  for (int s = 0; s < kSums; ++s) clear_sums(partial[s]);
  int64_t k = 0;
  for (; k + kFetchSteps <= count; k += kFetchSteps) {
    fetch_ahead(ahead);
#pragma GCC unroll 12
    for (int s = 0; s < kFetchSteps; ++s, weight += kLinearPanel) add_products(rows, k + s, weight, partial[s % kSums]);
  }
  for (; k < count; ++k, weight += kLinearPanel) add_products(rows, k, weight, partial[0]);
#pragma GCC unroll 12
  for (int v = 0; v < Vectors; ++v) {
#pragma GCC unroll 12
    for (int s = 0; s < kSums; ++s) sums[0][v] = sums[0][v] + partial[s][0][v];
  }
}

// One row alone reads each weight once, as fast as memory gives them: here from several places at once, each a little
// ahead. See LinearF32Call::streams for where.
constexpr int kStreams = 8;
constexpr int64_t kStreamAhead = 2;  // rows of the panel
template <int Vectors>
LISSOME_INLINE void accumulate_streams(const float* row, const float* weight, int64_t count,
                                       Floats (&sums)[1][Vectors]) {
  const int64_t length = count / kStreams;
  Floats other[1][Vectors];
  clear_sums(other);
  for (int64_t k = 0; k < length; ++k) {
#pragma GCC unroll 12
    for (int s = 0; s < kStreams; ++s) {
      const float* const rows[1] = {row + s * length};
      const float* from = weight + (s * length + k) * kLinearPanel;
#pragma GCC unroll 12
      for (int64_t line = 0; line < Vectors * Floats::kWidth; line += 16)
        _mm_prefetch(reinterpret_cast<const char*>(from + kStreamAhead * kLinearPanel + line), _MM_HINT_T0);
      add_products(rows, k, from, s % 2 == 0 ? sums : other);
    }
  }
  const float* const rows[1] = {row};
  for (int64_t k = kStreams * length; k < count; ++k) add_products(rows, k, weight + k * kLinearPanel, sums);
#pragma GCC unroll 12
  for (int v = 0; v < Vectors; ++v) sums[0][v] = sums[0][v] + other[0][v];
}

// One register of outputs after the other, each for all rows: what they share is loaded once. OutputF32 or OutputBf16.
template <typename Output, typename Function>
LISSOME_INLINE void finish_columns(const Output& output, const float* sums, int64_t sums_stride, int64_t rows,
                                   TilePlace place, const Function& activation) {
  for (int64_t n = 0; n < place.outputs; n += Floats::kWidth) {
    const int64_t left = place.outputs - n, at = place.row * output.y_stride + place.output + n;
    const int64_t residual_at = place.row * output.residual_stride + place.output + n;
    const bool whole = left >= Floats::kWidth;
    const float* bias = output.bias ? output.bias + place.output + n : nullptr;
    const Floats shift = !output.bias ? zeros() : whole ? load(bias) : load_first(bias, left);
    for (int64_t r = 0; r < rows; ++r) {
      Floats value = load(sums + r * sums_stride + n) + shift;
      if (output.residual_place == ResidualPlace::none) {
        value = activation(value);
      } else {
        const auto* from = output.residual + residual_at + r * output.residual_stride;
        const Floats residual = whole ? load(from) : load_first(from, left);
        value = output.residual_place == ResidualPlace::before_activation ? activation(value + residual)
                                                                          : activation(value) + residual;
      }
      auto* to = output.y + at + r * output.y_stride;
      if (whole) {
        store(to, value);
      } else {
        store_first(to, value, left);
      }
    }
  }
}

// Any activation, any number of outputs: finished rows through memory, out of line so that tiles stay small.
template <typename Output>
void finish_rows(const Output& output, const float* sums, int64_t sums_stride, int64_t rows, TilePlace place) {
  choose_activation(output.epilogue, [&](const auto& activation) {
    finish_columns(output, sums, sums_stride, rows, place, activation);
  });
}

// An activation that two bounds are, so that a tile applies it in registers.
struct Bounds {
  bool are_all;  // whether the activation is no more than these
  float floor, ceiling;
};
LISSOME_INLINE Bounds find_bounds(const Epilogue& epilogue) {
  constexpr float kInfinity = __builtin_inff();
  switch (epilogue.activation) {
    case Activation::none: return {true, -kInfinity, kInfinity};
    case Activation::relu: return {true, 0, kInfinity};
    case Activation::clamp: return {true, epilogue.alpha, epilogue.beta};
    default: return {false, 0, 0};
  }
}

// Register `Vector` of each row of a tile, finished within bounds; `fetch` and `put` take all of its lanes or the
// first.
template <int Vector, int Rows, int Vectors, typename Output, typename Fetch, typename Put>
LISSOME_INLINE void store_bounded(const Output& output, TilePlace place, const Bounds& bounds,
                                  const Floats (&sums)[Rows][Vectors], const Fetch& fetch, const Put& put) {
  const int64_t at = place.output + Vector * Floats::kWidth;
  const Floats floor = fill(bounds.floor), ceiling = fill(bounds.ceiling);
  const Floats shift = output.bias ? fetch(output.bias + at) : zeros();
#pragma GCC unroll 12
  for (int r = 0; r < Rows; ++r) {
    Floats value = sums[r][Vector] + shift;
    if (output.residual_place == ResidualPlace::before_activation) {
      value = value + fetch(output.residual + (place.row + r) * output.residual_stride + at);
    }
    put(output.y + (place.row + r) * output.y_stride + at, min_with(ceiling, max_with(floor, value)));
  }
}

template <int Rows, int Vectors, int Vector = 0, typename Output>
LISSOME_INLINE void store_columns(const Output& output, TilePlace place, const Bounds& bounds,
                                  const Floats (&sums)[Rows][Vectors]) {
  const int64_t left = place.outputs - Vector * Floats::kWidth;
  if (left >= Floats::kWidth) {
    const auto fetch = [](const auto* from) { return load(from); };
    const auto put = [](auto* to, Floats value) { store(to, value); };
    store_bounded<Vector>(output, place, bounds, sums, fetch, put);
  } else if (left > 0) {
    const auto fetch = [left](const auto* from) { return load_first(from, left); };
    const auto put = [left](auto* to, Floats value) { store_first(to, value, left); };
    store_bounded<Vector>(output, place, bounds, sums, fetch, put);
  }
  if constexpr (Vector + 1 < Vectors) store_columns<Rows, Vectors, Vector + 1>(output, place, bounds, sums);
}

// OutputF32 or OutputBf16.
template <int Rows, int Vectors, typename Output>
LISSOME_INLINE void store_tile(const Output& output, TilePlace place, const Floats (&sums)[Rows][Vectors]) {
  constexpr int64_t kWidth = Vectors * Floats::kWidth;
  const Bounds bounds = find_bounds(output.epilogue);
  if (bounds.are_all && output.residual_place != ResidualPlace::after_activation) {
    return store_columns(output, place, bounds, sums);
  }
  alignas(64) float spill[Rows * kWidth];
  store_sums(spill, kWidth, sums);
  finish_rows(output, spill, kWidth, Rows, place);
}

// What a visit to a tile adds: the products k of [begin, end) of its sums. Those of earlier visits lie in `kept`,
// [rows][64], unless this is the only one.
struct Visit {
  int64_t begin, end;
  bool first, last;
  float* kept = nullptr;
  int64_t kept_row = 0, kept_output = 0;  // which row and output lie first in `kept`
  Ahead ahead = {};
  bool streams = false;  // one row, whose weights come from memory, from several places at once

  LISSOME_INLINE float* kept_at(TilePlace place) const {
    return kept + (place.row - kept_row) * kLinearPanel + place.output - kept_output;
  }
};

template <int Rows, int Vectors>
LISSOME_INLINE void start_tile(const Visit& visit, TilePlace place, Floats (&sums)[Rows][Vectors]) {
  if (visit.first) {
    clear_sums(sums);
  } else {
    load_sums(visit.kept_at(place), kLinearPanel, sums);
  }
}

template <int Rows, int Vectors>
LISSOME_INLINE void finish_tile(const OutputF32& output, const Visit& visit, TilePlace place,
                                Floats (&sums)[Rows][Vectors]) {
  if (visit.last) {
    store_tile(output, place, sums);
  } else {
    store_sums(visit.kept_at(place), kLinearPanel, sums);
  }
}

template <typename Kernel, int Rows, int Vectors, typename Call>
LISSOME_INLINE void run_tiles_of(const Call& call, TilePlace place, int64_t tiles, Visit& visit) {
  for (; tiles > 0; --tiles, place.row += Rows) {
    stop_at_end(visit.ahead);
    Kernel::template run<Rows, Vectors>(call, place, visit);
  }
}

// Rows of [begin, end) against one column of tiles, as even as can be. `Kernel::run<Rows, Vectors>(call, place, visit)`
// does a tile.
template <typename Kernel, int Vectors, typename Call>
void run_tile_rows(const Call& call, TilePlace place, int64_t rows, Visit& visit) {
  static_assert(kTileRows == 6);
  // Six rows of one register are fewer sums than additions that are under way at once. A single row is not left over:
  // its sums have another order, and bits do not depend on how rows are cut.
  if constexpr (Vectors == 1 && kTileVectors > 2) {
    constexpr int64_t kTall = 2 * kTileRows;
    for (; rows >= kTall && rows != kTall + 1; place.row += kTall, rows -= kTall) {
      Kernel::template run<kTall, Vectors>(call, place, visit);
    }
  }
  for_even_tiles(rows, kTileRows, [&](int64_t count, int64_t tiles) {
    switch (count) {
      case 6: run_tiles_of<Kernel, 6, Vectors>(call, place, tiles, visit); break;
      case 5: run_tiles_of<Kernel, 5, Vectors>(call, place, tiles, visit); break;
      case 4: run_tiles_of<Kernel, 4, Vectors>(call, place, tiles, visit); break;
      case 3: run_tiles_of<Kernel, 3, Vectors>(call, place, tiles, visit); break;
      case 2: run_tiles_of<Kernel, 2, Vectors>(call, place, tiles, visit); break;
      default: run_tiles_of<Kernel, 1, Vectors>(call, place, tiles, visit); break;
    }
    place.row += tiles * count;
  });
}

// Columns are `Vectors` registers wide; three registers are done as four: panels are filled with zeros. Those wider
// than a tile have one row.
template <typename Kernel, int Vectors = kTileVectors, typename Call>
void run_tile_column(const Call& call, int64_t output, int64_t outputs, Range rows, Visit& visit) {
  constexpr int64_t kColumn = Vectors * Floats::kWidth;
  const int64_t left = outputs - output;
  const int64_t vectors = (left + Floats::kWidth - 1) / Floats::kWidth;
  const TilePlace place = {rows.begin, output, left < kColumn ? left : kColumn};
  const int64_t count = rows.end - rows.begin;
  if constexpr (Vectors > 2) {
    if (vectors == 2) return run_tile_rows<Kernel, 2>(call, place, count, visit);
  }
  if (vectors == 1) return run_tile_rows<Kernel, 1>(call, place, count, visit);
  if constexpr (Vectors > kTileVectors) {
    stop_at_end(visit.ahead);
    Kernel::template run<1, Vectors>(call, place, visit);
  } else {
    run_tile_rows<Kernel, Vectors>(call, place, count, visit);
  }
}

constexpr int64_t kBlockInputs = 512;        // of a sum in one visit: 128 KiB of a panel
constexpr int64_t kKeptRows = 256;           // whose sums are kept from visit to visit
constexpr int64_t kChunkBytes = 512 * 1024;  // of x, per sweep over the panels
constexpr int64_t kNearBytes = 1024 * 1024;  // weights that a part may well find in its second-level cache

struct TileSizes {
  int64_t rows, outputs, inputs;
  int64_t row_bytes;       // of x that a row adds to those before
  bool streams = false;    // there is one row, which may read weights from several places at once
  bool backwards = false;  // weights that are near are read from the last panel to the first
};

// One chunk of rows against the outputs of one panel, or a part's share of them.
template <typename Kernel, int Vectors, typename Call>
void run_panel(const Call& call, const TileSizes& sizes, const float* panel, Range columns, Range rows, bool more,
               bool fetches) {
  constexpr int64_t kColumn = Vectors * Floats::kWidth;
  alignas(64) float kept[kKeptRows * kLinearPanel];
  const int64_t blocks = sizes.inputs <= kBlockInputs * 5 / 4 ? 1 : (sizes.inputs + kBlockInputs - 1) / kBlockInputs;
  const int64_t visits = (rows.end - rows.begin + kTileRows - 1) / kTileRows * (columns.end - columns.begin);
  for (int64_t block = 0; block < blocks; ++block) {
    Visit visit = {sizes.inputs * block / blocks, sizes.inputs * (block + 1) / blocks, block == 0, block + 1 == blocks};
    visit.kept = kept, visit.kept_row = rows.begin;
    visit.kept_output = columns.begin * kColumn / kLinearPanel * kLinearPanel;
    visit.streams = fetches && sizes.streams && kTileVectors * Floats::kWidth == kLinearPanel;
    if (fetches && !visit.streams && (more || !visit.last))
      visit.ahead = look_ahead(panel + visit.end * kLinearPanel, visit.end - visit.begin, visits);
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      run_tile_column<Kernel, Vectors>(call, column * kColumn, sizes.outputs, rows, visit);
    }
  }
}

// The share of one part. Rows are taken in chunks that stay in cache from panel to panel.
template <typename Kernel, int Vectors = kTileVectors, typename Call>
LISSOME_INLINE void run_tiles(const Call& call, const TileSizes& sizes, const float* weight, int part, int parts) {
  constexpr int64_t kColumn = Vectors * Floats::kWidth, kColumns = kLinearPanel / kColumn;
  const int64_t columns = (sizes.outputs + kColumn - 1) / kColumn;
  const int64_t blocks = (sizes.rows + kTileRows - 1) / kTileRows;
  Range my_columns = {0, columns};
  Range my_rows = {0, sizes.rows};
  if (shares_columns(blocks, columns, parts, sizes.rows * sizes.row_bytes, sizes.outputs * sizes.inputs * 4)) {
    my_columns = split_evenly(columns, part, parts);
  } else {
    my_rows = split_by_unit(sizes.rows, kTileRows, part, parts);
  }
  // One tile of rows reads each weight once: fetching what is near would cost as much as reading it.
  const bool far = (my_columns.end - my_columns.begin) * kColumn * sizes.inputs * 4 > kNearBytes;
  const bool backwards = sizes.backwards && !far;
  const int64_t first_panel = my_columns.begin / kColumns;
  const int64_t panels =
      my_columns.begin < my_columns.end ? (my_columns.end + kColumns - 1) / kColumns - first_panel : 0;
  const int64_t fitting = kChunkBytes / (sizes.row_bytes + 1) / kTileRows * kTileRows;
  const int64_t chunk = fitting > kKeptRows ? kKeptRows : fitting < 16 * kTileRows ? 16 * kTileRows : fitting;
  const int64_t count = my_rows.end - my_rows.begin, chunks = (count + chunk - 1) / chunk;
  for (int64_t i = 0; i < chunks; ++i) {
    const Range rows = {my_rows.begin + count * i / chunks, my_rows.begin + count * (i + 1) / chunks};
    for (int64_t visited = 0; visited < panels; ++visited) {
      const int64_t panel = first_panel + (backwards ? panels - 1 - visited : visited);
      const int64_t begin = panel * kColumns, end = begin + kColumns;
      const Range taken = {begin > my_columns.begin ? begin : my_columns.begin,
                           end < my_columns.end ? end : my_columns.end};
      run_panel<Kernel, Vectors>(call, sizes, weight + panel * kLinearPanel * sizes.inputs, taken, rows,
                                 !backwards && taken.end < my_columns.end, far || blocks > 1);
    }
  }
}

}  // namespace
}  // namespace lissome

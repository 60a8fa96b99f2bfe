// Products of two computed matrices in bf16, over Floats. A block of b is laid out in panels of words, as is a chunk of
// rows of a unless it is bf16 with dense rows already; tiles of up to 6 rows and kTileVectors registers of outputs then
// stay in registers while words of the rows meet a panel from the second-level cache.
#pragma once

#include "lissome/kernel/gemm/matmul_bf16_words_body.h"

#include "lissome/kernel/gemm/linear_bf16.h"
#include "lissome/kernel/gemm/matmul_bf16_sizes.h"
#include "lissome/kernel/isa/tile_f32_body.h"

namespace lissome {
namespace {

// Rows of a as words; the stride in bytes.
struct WordRows {
  const std::byte* first;
  int64_t stride;
};

// Tiles of some rows against a panel. Sums begin as `start`, which holds a panel's bias, or as they were kept; they are
// kept again or finished.
template <typename Output>
struct WordTile {
  Output output;       // of the matrix; no bias: it is in `start`
  WordRows a;          // at the tile
  const float* panel;  // at the tile's outputs
  const float* start;  // the same
  float* kept;         // at the tile; null when this is the only block
  int64_t kept_stride;
  int64_t words;
  bool first, last;  // of the blocks of the sums
};

template <int Rows, int Vectors>
LISSOME_INLINE void add_words(WordRows a, const float* panel, int64_t words, Floats (&sums)[Rows][Vectors]) {
#pragma GCC unroll 4
  for (int64_t word = 0; word < words; ++word, panel += kLinearPanel, a.first += 4) {
    Floats columns[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) columns[v] = load(panel + v * Floats::kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      float value;
      __builtin_memcpy(&value, a.first + r * a.stride, 4);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] = add_word_products(fill(value), columns[v], sums[r][v]);
    }
  }
}

template <int Rows, int Vectors, typename Output>
void run_word_tile(const WordTile<Output>& tile, TilePlace place) {
  Floats sums[Rows][Vectors];
  if (tile.first) {
    load_sums(tile.start, 0, sums);
  } else {
    load_sums(tile.kept, tile.kept_stride, sums);
  }
  add_words(tile.a, tile.panel, tile.words, sums);
  if (tile.last) {
    store_tile(tile.output, place, sums);
  } else {
    store_sums(tile.kept, tile.kept_stride, sums);
  }
}

// `tiles` of them; `tile` and `place` are behind them then.
template <int Rows, int Vectors, typename Output>
LISSOME_INLINE void run_word_tiles(WordTile<Output>& tile, TilePlace& place, int64_t tiles) {
  for (; tiles > 0; --tiles) {
    run_word_tile<Rows, Vectors>(tile, place);
    place.row += Rows;
    tile.a.first += Rows * tile.a.stride;
    if (tile.kept) tile.kept += Rows * tile.kept_stride;
  }
}

// Rows in tiles as even as can be.
template <int Vectors, typename Output>
void run_word_rows(WordTile<Output> tile, TilePlace place, int64_t rows) {
  static_assert(kTileRows == 6);
  for_even_tiles(rows, kTileRows, [&](int64_t count, int64_t tiles) {
    switch (count) {
      case 6: run_word_tiles<6, Vectors>(tile, place, tiles); break;
      case 5: run_word_tiles<5, Vectors>(tile, place, tiles); break;
      case 4: run_word_tiles<4, Vectors>(tile, place, tiles); break;
      case 3: run_word_tiles<3, Vectors>(tile, place, tiles); break;
      case 2: run_word_tiles<2, Vectors>(tile, place, tiles); break;
      default: run_word_tiles<1, Vectors>(tile, place, tiles); break;
    }
  });
}

// Three registers are done as four: panels are filled with zeros.
template <typename Output>
void run_word_panel(WordTile<Output> tile, TilePlace place, int64_t rows) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  for (int64_t left = place.outputs; left > 0; left -= kColumn) {
    place.outputs = left < kColumn ? left : kColumn;
    const int64_t vectors = (place.outputs + Floats::kWidth - 1) / Floats::kWidth;
    if (vectors == 1) {
      run_word_rows<1>(tile, place, rows);
    } else if (vectors == 2 && kTileVectors > 2) {
      run_word_rows<2>(tile, place, rows);
    } else {
      run_word_rows<kTileVectors>(tile, place, rows);
    }
    place.output += kColumn;
    tile.panel += kColumn, tile.start += kColumn;
    if (tile.kept) tile.kept += kColumn;
  }
}

// One matrix of the batch, and the share of a part in it.
template <typename Output>
struct MatrixProduct {
  const MatmulBf16Call& call;
  MatmulBf16Offsets at;  // of the matrix
  Output output;         // the same
  MatmulBf16Sizes sizes;
  Range rows, panels;
  float *panel_words, *row_words, *sums;  // scratch
  int64_t sums_stride;
};

template <typename T>
WordSource<T> find_source(const void* data, int64_t at, int64_t stride, int64_t inner_stride) {
  return {static_cast<const T*>(data) + at, stride, inner_stride, 0, 0};
}

template <typename Output>
void lay_panels(const MatrixProduct<Output>& p, Range panels, Range inner) {
  const MatmulBf16Call& call = p.call;
  const int64_t words = (inner.end - inner.begin + kWordDepth - 1) / kWordDepth;
  const auto lay = [&](auto source) {
    source.inner = inner.end - inner.begin;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t first = panel * kLinearPanel, left = call.outputs - first;
      auto from = source;
      from.first += first * from.stride;
      from.count = left < kLinearPanel ? left : kLinearPanel;
      lay_panel(from, p.panel_words + (panel - panels.begin) * kLinearPanel * words);
    }
  };
  const int64_t at = p.at.b + inner.begin * call.b_inner_stride;
  if (call.b_dtype == Dtype::f32) {
    lay(find_source<float>(call.b, at, call.b_output_stride, call.b_inner_stride));
  } else {
    lay(find_source<uint16_t>(call.b, at, call.b_output_stride, call.b_inner_stride));
  }
}

template <typename Output>
WordRows find_word_rows(const MatrixProduct<Output>& p, Range rows, Range inner) {
  const MatmulBf16Call& call = p.call;
  const int64_t count = inner.end - inner.begin;
  const int64_t at = p.at.a + rows.begin * call.a_row_stride + inner.begin * call.a_inner_stride;
  const bool is_wide = call.a_dtype == Dtype::f32;
  if (kWordDepth == 2 && !is_wide && call.a_inner_stride == 1 && count % 2 == 0) {
    return {static_cast<const std::byte*>(call.a) + at * 2, call.a_row_stride * 2};
  }
  const int64_t stride = choose_row_words((count + kWordDepth - 1) / kWordDepth);
  const auto lay = [&](auto source) {
    source.count = rows.end - rows.begin, source.inner = count;
    lay_rows(source, p.row_words, stride);
  };
  if (is_wide) {
    lay(find_source<float>(call.a, at, call.a_row_stride, call.a_inner_stride));
  } else {
    lay(find_source<uint16_t>(call.a, at, call.a_row_stride, call.a_inner_stride));
  }
  return {reinterpret_cast<const std::byte*>(p.row_words), stride * 4};
}

// The bias of a panel, zeros where there is none.
LISSOME_INLINE void read_bias(const MatmulBf16Call& call, int64_t panel, float* bias) {
  for (int64_t n = 0; n < kLinearPanel; ++n) {
    const int64_t at = panel * kLinearPanel + n;
    const bool is_there = call.bias && at < call.outputs;
    bias[n] = is_there ? widen_bf16(narrow_bf16(read_element(call.bias_dtype, call.bias, at))) : 0;
  }
}

// One chunk of rows against the panels that are laid out.
template <typename Output>
void run_word_chunk(const MatrixProduct<Output>& p, Range rows, Range panels, Range inner) {
  const int64_t words = (inner.end - inner.begin + kWordDepth - 1) / kWordDepth;
  WordTile<Output> tile = {
      p.output,         find_word_rows(p, rows, inner), nullptr, nullptr, nullptr, p.sums_stride, words,
      inner.begin == 0, inner.end == p.call.inner};
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    alignas(64) float start[kLinearPanel];
    read_bias(p.call, panel, start);
    const int64_t first = panel * kLinearPanel, left = p.call.outputs - first, i = panel - panels.begin;
    tile.start = start;
    tile.panel = p.panel_words + i * kLinearPanel * words;
    if (p.sums) {
      const bool in_y = keeps_sums_in_y(p.call);
      tile.kept = p.sums + rows.begin * p.sums_stride + (in_y ? first : i * kLinearPanel);
    }
    run_word_panel(tile, {rows.begin, first, left < kLinearPanel ? left : kLinearPanel}, rows.end - rows.begin);
  }
}

template <typename Output>
void run_matrix(const MatrixProduct<Output>& p) {
  const MatmulBf16Sizes& sizes = p.sizes;
  for (int64_t first = p.panels.begin; first < p.panels.end; first += sizes.panels) {
    const Range panels = {first, first + sizes.panels < p.panels.end ? first + sizes.panels : p.panels.end};
    for (int64_t block = 0; block < sizes.blocks; ++block) {
      const int64_t begin = block * sizes.inner, end = begin + sizes.inner;
      const Range inner = {begin, end < p.call.inner ? end : p.call.inner};
      lay_panels(p, panels, inner);
      for (int64_t row = p.rows.begin; row < p.rows.end; row += sizes.rows) {
        const int64_t last = row + sizes.rows;
        run_word_chunk(p, {row, last < p.rows.end ? last : p.rows.end}, panels, inner);
      }
    }
  }
}

template <typename Output>
void run_matrices(const MatmulBf16Call& call, int part, int parts) {
  const int64_t panels = (call.outputs + kLinearPanel - 1) / kLinearPanel;
  const MatmulBf16Share share = share_matmul_bf16(call, count_matrices(call) * panels, part, parts);
  if (share.rows.begin == share.rows.end) return;
  const MatmulBf16Scratch scratch = measure_matmul_bf16_scratch(call);
  auto* words = reinterpret_cast<float*>(call.scratch) + part * scratch.total();
  MatrixProduct<Output> p = {call, {}, {}, choose_matmul_bf16_sizes(call), share.rows, {}, words, nullptr, nullptr, 0};
  p.row_words = words + scratch.panels;
  for (int64_t at = share.panels.begin; at < share.panels.end;) {
    const int64_t matrix = at / panels, next = (matrix + 1) * panels;
    p.panels = {at - matrix * panels, (next < share.panels.end ? next : share.panels.end) - matrix * panels};
    p.at = find_matrix(call, matrix);
    p.output.epilogue = call.epilogue, p.output.residual_place = call.residual_place;
    p.output.y_stride = p.output.residual_stride = call.outputs;
    p.output.y = static_cast<decltype(p.output.y)>(call.y) + matrix * call.rows * call.outputs;
    if (call.residual) {
      p.output.residual = static_cast<decltype(p.output.residual)>(call.residual) + matrix * call.rows * call.outputs;
    }
    if (p.sizes.blocks > 1) {
      const bool in_y = keeps_sums_in_y(call);
      p.sums = in_y ? reinterpret_cast<float*>(p.output.y) : p.row_words + scratch.rows;
      p.sums_stride = in_y ? call.outputs : p.sizes.panels * kLinearPanel;
    }
    run_matrix(p);
    at = next;
  }
}

LISSOME_INLINE void run_matmul_bf16(const MatmulBf16Call& call, int part, int parts) {
  if (call.y_dtype == Dtype::f32) {
    run_matrices<OutputF32>(call, part, parts);
  } else {
    run_matrices<OutputBf16>(call, part, parts);
  }
}

}  // namespace
}  // namespace lissome

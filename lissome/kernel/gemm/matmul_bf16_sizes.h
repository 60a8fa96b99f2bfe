// How a bf16 matmul is cut: into parts, and each part into blocks that stay in the second-level cache. Static: see
// split.h.
#pragma once

#include "lissome/kernel/gemm/matmul_bf16.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

inline int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// What is laid out at once: `inner` products of the sums of `panels` panels of outputs, and of `rows` rows of a.
struct MatmulBf16Sizes {
  int64_t blocks, inner;  // of the sums; an even number
  int64_t panels, rows;
};
inline MatmulBf16Sizes choose_matmul_bf16_sizes(const MatmulBf16Call& call) {
  constexpr int64_t kInner = 1024, kPanelElements = 384 * 1024, kRowElements = 128 * 1024, kTile = 6;
  MatmulBf16Sizes sizes;
  sizes.blocks = call.inner <= kInner * 5 / 4 ? 1 : (call.inner + kInner - 1) / kInner;
  sizes.inner = round_up((call.inner + sizes.blocks - 1) / sizes.blocks, 2);
  const int64_t panels = (call.outputs + kLinearPanel - 1) / kLinearPanel;
  const int64_t inner = sizes.inner > 0 ? sizes.inner : 1;
  const int64_t fitting_panels = kPanelElements / (kLinearPanel * inner);
  const int64_t rounds = panels == 0 ? 1 : (panels + fitting_panels - 1) / fitting_panels;
  sizes.panels = (panels + rounds - 1) / rounds;
  const int64_t fitting_rows = kRowElements / inner / kTile * kTile;
  sizes.rows = fitting_rows < call.rows ? fitting_rows : call.rows;
  return sizes;
}

// Sums of several blocks are kept in y where that is f32, whole panels fit and nothing else is there.
inline bool keeps_sums_in_y(const MatmulBf16Call& call) {
  return call.y_dtype == Dtype::f32 && call.outputs % kLinearPanel == 0 && call.residual_place == ResidualPlace::none;
}

// From row to row of a that is laid out: whole registers fit in, and rows do not share the sets of a cache.
inline int64_t choose_row_words(int64_t words) { return round_up(words, 16) | 16; }

// In words of 4 bytes, each a pair of bf16 or one f32.
struct MatmulBf16Scratch {
  int64_t panels, rows, sums;
  int64_t total() const { return round_up(panels + rows + sums, 16); }
};
inline MatmulBf16Scratch measure_matmul_bf16_scratch(const MatmulBf16Call& call) {
  const MatmulBf16Sizes sizes = choose_matmul_bf16_sizes(call);
  const int64_t panels = sizes.panels * kLinearPanel;
  return {panels * sizes.inner, sizes.rows * choose_row_words(sizes.inner),
          sizes.blocks == 1 || keeps_sums_in_y(call) ? 0 : call.rows * panels};
}

// A part has whole panels, or some rows against all panels: each part lays out the panels that it reads, and the rows.
struct MatmulBf16Share {
  Range panels;  // of all matrices
  Range rows;
};
inline MatmulBf16Share share_matmul_bf16(const MatmulBf16Call& call, int64_t panels, int part, int parts) {
  constexpr int64_t kTile = 6;
  // In cycles for each product of a sum: of a tile against a panel, of laying out a panel, of a tile of rows.
  constexpr int64_t kMultiply = 12, kLayPanel = 20, kLayRows = 2;
  const int64_t tiles = (call.rows + kTile - 1) / kTile;
  const int64_t most_panels = (panels + parts - 1) / parts, most_tiles = (tiles + parts - 1) / parts;
  const int64_t by_panels = most_panels * (tiles * kMultiply + kLayPanel) + tiles * kLayRows;
  const int64_t by_rows = panels * (most_tiles * kMultiply + kLayPanel) + most_tiles * kLayRows;
  if (by_panels <= by_rows) return {split_evenly(panels, part, parts), {0, call.rows}};
  return {{0, panels}, split_by_unit(call.rows, kTile, part, parts)};
}

// Where a matrix of the batch begins, in elements.
struct MatmulBf16Offsets {
  int64_t a, b;
};
inline MatmulBf16Offsets find_matrix(const MatmulBf16Call& call, int64_t matrix) {
  MatmulBf16Offsets at = {0, 0};
  for (int d = call.batch_rank - 1; d >= 0; --d) {
    const int64_t i = matrix % call.batch_sizes[d];
    at.a += i * call.a_batch_strides[d], at.b += i * call.b_batch_strides[d];
    matrix /= call.batch_sizes[d];
  }
  return at;
}

[[maybe_unused]] inline int64_t count_matrices(const MatmulBf16Call& call) {
  int64_t count = 1;
  for (int d = 0; d < call.batch_rank; ++d) count *= call.batch_sizes[d];
  return count;
}

}  // namespace
}  // namespace lissome

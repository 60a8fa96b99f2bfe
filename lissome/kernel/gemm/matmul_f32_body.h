// Products of two computed matrices over Floats: each panel of b is laid out as linear_f32 reads it, then tiles of rows
// of a run against it; see tile_f32_body.h. A gradient of a weight reads a down its columns: neighbouring rows share
// the lines of cache that its tiles fetch ahead.
#pragma once

#include "lissome/kernel/gemm/linear_f32_body.h"
#include "lissome/kernel/gemm/matmul_places.h"
#include "lissome/kernel/gemm/pack_columns_body.h"

namespace lissome {
namespace {

// Each step along the sum may lie on a page of its own, which the processor does not foresee.
LISSOME_INLINE void fetch_line_ahead(const float* at, int64_t stride, int64_t count) {
  constexpr int64_t kSteps = 8, kLine = 64 / sizeof(float);
  for (int64_t n = 0; n < count; n += kLine) {
    _mm_prefetch(reinterpret_cast<const char*>(at + n + kSteps * stride), _MM_HINT_T0);
  }
}

LISSOME_INLINE void pack_panel(const MatmulF32Call& call, const MatmulPlace& place, float* panel) {
  if (call.b_inner_stride == 1) {
    return pack_columns(place.b, call.b_output_stride, place.outputs, call.inner, panel);
  }
  for (int64_t k = 0; k < call.inner; ++k, panel += kLinearPanel) {
    const float* row = place.b + k * call.b_inner_stride;
    for (int64_t n = place.outputs; n < kLinearPanel; ++n) panel[n] = 0;
    if (call.b_output_stride == 1) {
      fetch_line_ahead(row, call.b_inner_stride, place.outputs);
      __builtin_memcpy(panel, row, static_cast<size_t>(place.outputs) * sizeof(float));
    } else {
      for (int64_t n = 0; n < place.outputs; ++n) panel[n] = row[n * call.b_output_stride];
    }
  }
}

// Rows of a that are not dense, or sums that go on: as LinearF32Call, with a stride along the sum and what it starts
// from, whose rows lie as those of y.
struct StridedCall : LinearF32Call {
  int64_t inner_stride = 0;
  const float* start = nullptr;
};

template <int Rows, int Vectors>
LISSOME_INLINE void start_strided(const StridedCall& call, const Visit& visit, TilePlace place,
                                  Floats (&sums)[Rows][Vectors]) {
  if (!visit.first || !call.start) return start_tile(visit, place, sums);
  constexpr int64_t kWidth = Floats::kWidth;
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    const float* from = call.start + (place.row + r) * call.y_stride + place.output;
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const int64_t left = place.outputs - v * kWidth;
      sums[r][v] = left >= kWidth ? load(from + v * kWidth) : left > 0 ? load_first(from + v * kWidth, left) : zeros();
    }
  }
}

constexpr int64_t kStepsAhead = 12;  // along the sum, of the lines that hold the tile's rows

template <int Rows, int Vectors>
LISSOME_INLINE void accumulate_strided(const float* const (&rows)[Rows], int64_t stride, const float* weight,
                                       int64_t count, Floats (&sums)[Rows][Vectors], Ahead& ahead) {
  int64_t k = 0, at = 0;
  const int64_t far = kStepsAhead * stride;
  for (; k + kFetchSteps <= count; k += kFetchSteps) {
    fetch_ahead(ahead);
#pragma GCC unroll 8
    for (int s = 0; s < kFetchSteps; ++s, weight += kLinearPanel, at += stride) {
      _mm_prefetch(reinterpret_cast<const char*>(rows[Rows - 1] + at + far), _MM_HINT_T0);
      add_products(rows, at, weight, sums);
    }
  }
  for (; k < count; ++k, weight += kLinearPanel, at += stride) add_products(rows, at, weight, sums);
}

struct StridedTile {
  template <int Rows, int Vectors>
  static void run(const StridedCall& call, TilePlace place, Visit& visit) {
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = call.x + (place.row + r) * call.x_stride + visit.begin * call.inner_stride;
    const float* weight = call.weight + visit.begin * kLinearPanel + place.output % kLinearPanel;
    Floats sums[Rows][Vectors];
    start_strided(call, visit, place, sums);
    accumulate_strided(rows, call.inner_stride, weight, visit.end - visit.begin, sums, visit.ahead);
    finish_tile(call, visit, place, sums);
  }
};

// Where a panel takes several columns of tiles, rows that lie down columns are copied as tiles read them, [tile][k][6],
// once for all columns; many at once, so that whole lines of cache are read.
constexpr int64_t kPackedRows = 8 * kTileRows;
constexpr int64_t kMostBlockInputs = kBlockInputs * 5 / 4;
constexpr int64_t kPackedTile = kMostBlockInputs * kTileRows + Floats::kWidth;  // a store reaches beyond six numbers

struct PackedCall : StridedCall {
  Range packed_rows;
  const float* packed;
};

void pack_tiles(const StridedCall& call, Range rows, const Visit& visit, float* packed) {
  const float* from = call.x + visit.begin * call.inner_stride;
  for (int64_t k = visit.begin; k < visit.end; ++k, from += call.inner_stride, packed += kTileRows) {
    float* to = packed;
    int64_t row = rows.begin;
    if (call.x_stride == 1) {
      fetch_line_ahead(from + row, call.inner_stride, rows.end - row);
      const int64_t end = rows.end < call.rows - 1 ? rows.end : call.rows - Floats::kWidth + 1;
      // Two numbers too many, over which those of the next k are written.
      for (; row < end; row += kTileRows, to += kPackedTile) store(to, load(from + row));
    }
    for (; row < rows.end; row += kTileRows, to += kPackedTile) {
      for (int64_t r = 0; r < kTileRows && row + r < rows.end; ++r) to[r] = from[(row + r) * call.x_stride];
    }
  }
}

struct PackedTile {
  template <int Rows, int Vectors>
  static void run(const PackedCall& call, TilePlace place, Visit& visit) {
    const float* packed = call.packed + (place.row - call.packed_rows.begin) / kTileRows * kPackedTile;
    const float* rows[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) rows[r] = packed + r;
    const float* weight = call.weight + visit.begin * kLinearPanel + place.output;
    Floats sums[Rows][Vectors];
    start_strided(call, visit, place, sums);
    accumulate_strided(rows, kTileRows, weight, visit.end - visit.begin, sums, visit.ahead);
    finish_tile(call, visit, place, sums);
  }
};

void run_packed_tiles(const StridedCall& strided) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  alignas(64) float packed[kPackedRows / kTileRows * kPackedTile], kept[kPackedRows * kLinearPanel];
  PackedCall call{strided, {}, packed};
  const int64_t blocks = call.inputs <= kMostBlockInputs ? 1 : (call.inputs + kBlockInputs - 1) / kBlockInputs;
  for (int64_t row = 0; row < call.rows; row += kPackedRows) {
    call.packed_rows = {row, row + kPackedRows < call.rows ? row + kPackedRows : call.rows};
    const int64_t whole = row + (call.packed_rows.end - row) / kTileRows * kTileRows;
    for (int64_t block = 0; block < blocks; ++block) {
      Visit visit = {call.inputs * block / blocks, call.inputs * (block + 1) / blocks, block == 0, block + 1 == blocks};
      visit.kept = kept, visit.kept_row = row;
      pack_tiles(call, call.packed_rows, visit, packed);
      for (int64_t output = 0; output < call.outputs; output += kColumn) {
        run_tile_column<PackedTile>(call, output, call.outputs, {row, whole}, visit);
        run_tile_column<PackedTile>(call, output, call.outputs, {whole, call.packed_rows.end}, visit);
      }
    }
  }
}

LISSOME_INLINE void run_strided_tiles(const StridedCall& call) {
  if (call.inner_stride != 1 && kTileVectors * Floats::kWidth < kLinearPanel) return run_packed_tiles(call);
  const TileSizes sizes = {call.rows, call.outputs, call.inputs, call.inputs * static_cast<int64_t>(sizeof(float))};
  run_tiles<StridedTile>(call, sizes, call.weight, 0, 1);
}

LISSOME_INLINE void run_matmul_f32(const MatmulF32Call& call, int part, int parts) {
  float* panel = call.scratch + part * kLinearPanel * call.inner;
  for_each_matmul_panel(call, part, parts, [&](const MatmulPlace& place) {
    pack_panel(call, place, panel);
    StridedCall linear;
    static_cast<OutputF32&>(linear) = place.output;
    linear.x = place.a, linear.weight = panel;
    linear.rows = place.rows, linear.inputs = call.inner, linear.outputs = place.outputs;
    linear.x_stride = call.a_row_stride, linear.inner_stride = call.a_inner_stride, linear.start = place.start;
    if (call.a_inner_stride == 1 && !place.start) {
      run_linear_f32(linear, 0, 1);
    } else {
      run_strided_tiles(linear);
    }
  });
}

}  // namespace
}  // namespace lissome

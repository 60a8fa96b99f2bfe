// Copies, concatenations and gathers are bound by memory: one portable form serves all.
#include "lissome/kernel/move/move.h"

#include <cstring>

#include "lissome/kernel/gemm/linear_bf16_sizes.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/move/copy_piece.h"
#include "lissome/kernel/move/copy_planes.h"
#include "lissome/kernel/move/kernel_versions.h"

namespace lissome {

void copy_portable(const CopyCall& call, int part, int parts) {
  switch (call.item) {
    case 1: copy_planes<uint8_t>(call, part, parts, copy_squares<uint8_t>); break;
    case 2: copy_planes<uint16_t>(call, part, parts, copy_squares<uint16_t>); break;
    case 4: copy_planes<uint32_t>(call, part, parts, copy_squares<uint32_t>); break;
    default: copy_planes<uint64_t>(call, part, parts, copy_squares<uint64_t>); break;
  }
}

// Parts share the rows; a single row is cut by bytes.
void concat_portable(const ConcatCall& call, int part, int parts) {
  const bool by_bytes = call.outer < parts;
  const Range rows = by_bytes ? Range{0, call.outer} : split_evenly(call.outer, part, parts);
  int64_t row_bytes = 0;
  for (int i = 0; i < call.pieces; ++i) row_bytes += call.widths[i];
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    char* y = static_cast<char*>(call.y) + row * row_bytes;
    for (int i = 0; i < call.pieces; ++i) {
      const int64_t width = call.widths[i];
      const Range mine = by_bytes ? split_by_unit(width, 64, part, parts) : Range{0, width};
      const char* x = static_cast<const char*>(call.x[i]) + row * call.pitches[i];
      // What was made in its place stays there.
      if (x != y && mine.end > mine.begin) copy_piece(y + mine.begin, x + mine.begin, mine.end - mine.begin);
      y += width;
    }
  }
}

namespace {

void copy_packed_f32(const float* table, int64_t row, int64_t columns, float* y) {
  const float* first = table + row / kLinearPanel * kLinearPanel * columns + row % kLinearPanel;
  for (int64_t k = 0; k < columns; ++k) y[k] = first[k * kLinearPanel];
}

void copy_packed_bf16(const uint16_t* table, int64_t row, int64_t columns, uint16_t* y) {
  const int64_t steps = count_bf16_steps(columns);
  for (int64_t k = 0; k < columns; ++k) y[k] = table[find_packed_bf16(row, k, steps)];
}

void copy_row(const GatherRowsCall& call, int64_t row, char* y) {
  switch (call.layout) {
    case TableLayout::rows:
      std::memcpy(y, static_cast<const char*>(call.table) + row * call.row_bytes, static_cast<size_t>(call.row_bytes));
      break;
    case TableLayout::linear_f32:
      copy_packed_f32(static_cast<const float*>(call.table), row, call.row_bytes / 4, reinterpret_cast<float*>(y));
      break;
    case TableLayout::linear_bf16:
      copy_packed_bf16(static_cast<const uint16_t*>(call.table), row, call.row_bytes / 2,
                       reinterpret_cast<uint16_t*>(y));
      break;
  }
}

}  // namespace

void gather_rows_portable(const GatherRowsCall& call, int part, int parts) {
  const Range range = split_evenly(call.count, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    int64_t index = call.narrow_indices ? static_cast<const int32_t*>(call.indices)[i]
                                        : static_cast<const int64_t*>(call.indices)[i];
    if (call.negative_allowed && index < 0) index += call.rows;
    char* y = static_cast<char*>(call.y) + i * call.row_bytes;
    if (index < 0 || index >= call.rows) {
      __atomic_store_n(call.fault, call.fault_code, __ATOMIC_RELAXED);
      std::memset(y, 0, static_cast<size_t>(call.row_bytes));
      continue;
    }
    copy_row(call, index, y);
  }
}

}  // namespace lissome

// Copies, concatenations and gathers are bound by memory: one portable form serves all. The portable reduction is the
// oracle of the vector ones.
#include "lissome/kernel/move/move.h"

#include <cmath>
#include <cstring>

#include "lissome/kernel/gemm/linear_bf16_sizes.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"
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

template <typename T, typename Sum>
void cumulate_all(const CumulateCall& call, int part, int parts) {
  const Range mine = split_evenly(call.outer * call.inner, part, parts);
  for (int64_t at = mine.begin; at < mine.end; ++at) {
    const int64_t start = at / call.inner * call.count * call.inner + at % call.inner;
    Sum sum = 0;
    for (int64_t k = 0; k < call.count; ++k) {
      sum += static_cast<Sum>(static_cast<const T*>(call.x)[start + k * call.inner]);
      static_cast<T*>(call.y)[start + k * call.inner] = static_cast<T>(sum);
    }
  }
}

}  // namespace

void cumulate_portable(const CumulateCall& call, int part, int parts) {
  if (call.integers) {
    cumulate_all<int64_t, uint64_t>(call, part, parts);  // wraps around
  } else {
    cumulate_all<float, double>(call, part, parts);
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

namespace {

template <typename T>
void reduce_all(const ReduceCallOf<T>& call, int part, int parts) {
  const Range range = split_evenly(call.outer * call.inner, part, parts);
  for (int64_t at = range.begin; at < range.end; ++at) {
    const T* x = call.x + at / call.inner * call.count * call.inner + at % call.inner;
    double sum = 0, squares = 0, largest = -INFINITY, smallest = INFINITY;
    for (int64_t k = 0; k < call.count; ++k) {
      const double value = widen_portable(x[k * call.inner]);
      sum += value;
      squares += value * value;
      largest = std::isnan(value) || value > largest ? (std::isnan(largest) ? largest : value) : largest;
      smallest = std::isnan(value) || value < smallest ? (std::isnan(smallest) ? smallest : value) : smallest;
    }
    switch (call.reduction) {
      case Reduction::sum: narrow_portable(sum, call.y[at]); break;
      case Reduction::mean: narrow_portable(sum / static_cast<double>(call.count), call.y[at]); break;
      case Reduction::norm: narrow_portable(std::sqrt(squares), call.y[at]); break;
      case Reduction::maximum: narrow_portable(largest, call.y[at]); break;
      case Reduction::minimum: narrow_portable(smallest, call.y[at]); break;
    }
  }
}

}  // namespace

void reduce_portable(const ReduceCall& call, int part, int parts) { reduce_all(call, part, parts); }
void reduce_bf16_portable(const ReduceBf16Call& call, int part, int parts) { reduce_all(call, part, parts); }

void find_largest_portable(const ReduceCall& call, int part, int parts) {
  const Range range = split_evenly(call.outer * call.inner, part, parts);
  for (int64_t at = range.begin; at < range.end; ++at) {
    const float* x = call.x + at / call.inner * call.count * call.inner + at % call.inner;
    int64_t best = 0;
    for (int64_t k = 1; k < call.count; ++k) {
      const float value = x[k * call.inner], largest = x[best * call.inner];
      if (value > largest || (value != value && largest == largest)) best = k;
    }
    call.positions[at] = best;
  }
}

}  // namespace lissome

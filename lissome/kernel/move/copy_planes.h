// A strided copy as planes of its last two dimensions. Static: see split.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/move/move.h"

namespace lissome {
namespace {

// Rows and columns of a plane; strides are in elements.
template <typename T>
struct CopyPlane {
  const T* x;
  T* y;
  int64_t rows, columns;
  int64_t x_row, x_column, y_row, y_column;
};

// In squares, so that both sides are walked line by line within the cache.
template <typename T>
void copy_squares(const CopyPlane<T>& p) {
  constexpr int64_t kSquare = 16;
  if (p.x_column == 1 && p.y_column == 1) {
    for (int64_t i = 0; i < p.rows; ++i) {
      std::memcpy(p.y + i * p.y_row, p.x + i * p.x_row, static_cast<size_t>(p.columns) * sizeof(T));
    }
    return;
  }
  for (int64_t i0 = 0; i0 < p.rows; i0 += kSquare) {
    const int64_t i1 = i0 + kSquare < p.rows ? i0 + kSquare : p.rows;
    for (int64_t j0 = 0; j0 < p.columns; j0 += kSquare) {
      const int64_t j1 = j0 + kSquare < p.columns ? j0 + kSquare : p.columns;
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) p.y[i * p.y_row + j * p.y_column] = p.x[i * p.x_row + j * p.x_column];
      }
    }
  }
}

// Parts share the planes; of fewer planes than parts the rows, or the columns where rows are turned into columns and
// these are more: the pixels of an image then, so that a core reads those that it wrote in the step before.
template <typename T, typename Copy>
void copy_planes(const CopyCall& call, int part, int parts, const Copy& copy) {
  int64_t planes = 1;
  for (int d = 0; d < call.rank - 2; ++d) planes *= call.sizes[d];
  const int row = call.rank - 2, column = row + 1;
  const bool few = planes < parts;
  const bool by_columns = few && call.x_strides[column] != 1 && call.sizes[column] > call.sizes[row];
  constexpr int64_t kLine = 64 / sizeof(T);
  const Range mine = few ? Range{0, planes} : split_evenly(planes, part, parts);
  const Range rows = few && !by_columns ? split_evenly(call.sizes[row], part, parts) : Range{0, call.sizes[row]};
  const Range columns =
      by_columns ? split_by_unit(call.sizes[column], kLine, part, parts) : Range{0, call.sizes[column]};
  for (int64_t plane = mine.begin; plane < mine.end; ++plane) {
    int64_t x_at = rows.begin * call.x_strides[row] + columns.begin * call.x_strides[column];
    int64_t y_at = rows.begin * call.y_strides[row] + columns.begin * call.y_strides[column], rest = plane;
    for (int d = row - 1; d >= 0; --d) {
      x_at += rest % call.sizes[d] * call.x_strides[d];
      y_at += rest % call.sizes[d] * call.y_strides[d];
      rest /= call.sizes[d];
    }
    copy(CopyPlane<T>{static_cast<const T*>(call.x) + x_at, static_cast<T*>(call.y) + y_at, rows.end - rows.begin,
                      columns.end - columns.begin, call.x_strides[row], call.x_strides[column], call.y_strides[row],
                      call.y_strides[column]});
  }
}

}  // namespace
}  // namespace lissome

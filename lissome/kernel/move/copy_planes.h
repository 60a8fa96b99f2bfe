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

// Parts share the planes, or the rows of a few.
template <typename T, typename Copy>
void copy_planes(const CopyCall& call, int part, int parts, const Copy& copy) {
  int64_t planes = 1;
  for (int d = 0; d < call.rank - 2; ++d) planes *= call.sizes[d];
  const int last = call.rank - 2;
  const bool split_rows = planes < parts;
  const Range mine = split_rows ? Range{0, planes} : split_evenly(planes, part, parts);
  const Range rows = split_rows ? split_evenly(call.sizes[last], part, parts) : Range{0, call.sizes[last]};
  for (int64_t plane = mine.begin; plane < mine.end; ++plane) {
    int64_t x_at = rows.begin * call.x_strides[last], y_at = rows.begin * call.y_strides[last], rest = plane;
    for (int d = last - 1; d >= 0; --d) {
      x_at += rest % call.sizes[d] * call.x_strides[d];
      y_at += rest % call.sizes[d] * call.y_strides[d];
      rest /= call.sizes[d];
    }
    copy(CopyPlane<T>{static_cast<const T*>(call.x) + x_at, static_cast<T*>(call.y) + y_at, rows.end - rows.begin,
                      call.sizes[last + 1], call.x_strides[last], call.x_strides[last + 1], call.y_strides[last],
                      call.y_strides[last + 1]});
  }
}

}  // namespace
}  // namespace lissome

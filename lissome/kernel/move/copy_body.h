// Copies that turn rows into columns, a square of registers at a time, or weave a few rows; the rest as the portable
// form does it.
#pragma once

#include "lissome/kernel/move/copy_planes.h"
#include "lissome/kernel/move/transpose_body.h"
#include "lissome/kernel/move/transpose_narrow_body.h"
#include "lissome/kernel/move/weave_body.h"

namespace lissome {
namespace {

// The square from (row, column) on: x has its columns in rows of memory.
LISSOME_INLINE void turn_square(const CopyPlane<float>& p, int64_t row, int64_t column) {
  constexpr int kWidth = Floats::kWidth;
  const float* x = p.x + row + column * p.x_column;
  float* y = p.y + row * p.y_row + column;
  const int64_t rows = p.rows - row, columns = p.columns - column;
  Floats lines[kWidth];
  if (rows >= kWidth && columns >= kWidth) {
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) lines[i] = load(x + i * p.x_column);
    transpose(lines);
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) store(y + i * p.y_row, lines[i]);
    return;
  }
  const int64_t height = rows < kWidth ? rows : kWidth, width = columns < kWidth ? columns : kWidth;
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) lines[i] = i < width ? load_first(x + i * p.x_column, height) : zeros();
  transpose(lines);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    if (i < height) store_first(y + i * p.y_row, lines[i], width);
  }
}

// A few columns beside each other in y, such as the colours of an image.
template <int Columns, typename T>
LISSOME_INLINE void weave_columns(const CopyPlane<T>& p) {
  for (int64_t i = 0; i < p.rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Columns; ++j) p.y[i * p.y_row + j] = p.x[i + j * p.x_column];
  }
}

// A few rows of y that lie beside each other in x.
template <int Rows, typename T>
LISSOME_INLINE void part_rows(const CopyPlane<T>& p) {
  for (int64_t j = 0; j < p.columns; ++j) {
#pragma GCC unroll 4
    for (int i = 0; i < Rows; ++i) p.y[i * p.y_row + j] = p.x[i + j * p.x_column];
  }
}

LISSOME_INLINE void turn_squares(const CopyPlane<float>& p) {
  for (int64_t row = 0; row < p.rows; row += Floats::kWidth) {
    for (int64_t column = 0; column < p.columns; column += Floats::kWidth) turn_square(p, row, column);
  }
}
template <typename T>
LISSOME_INLINE void turn_squares(const CopyPlane<T>& p) {
  turn_narrow_plane(p);
}

// A plane whose rows lie beside each other in x, and whose columns in y.
template <typename T>
LISSOME_INLINE void turn_plane(const CopyPlane<T>& p) {
  if (weaves_pairs(p)) return weave_pairs(p.x, p.x + p.x_column, p.y, p.rows);
  switch (p.columns) {
    case 3: return weave_columns<3>(p);
    case 4: return weave_columns<4>(p);
    default: break;
  }
  switch (p.rows) {
    case 2: return part_rows<2>(p);
    case 3: return part_rows<3>(p);
    case 4: return part_rows<4>(p);
    default: break;
  }
  turn_squares(p);
}

template <typename T>
void copy_plane(const CopyPlane<T>& p) {
  p.x_row == 1 && p.y_column == 1 && p.rows > 1 && p.columns > 1 ? turn_plane(p) : copy_squares(p);
}

LISSOME_INLINE void run_copy(const CopyCall& call, int part, int parts) {
  switch (call.item) {
    case 1: return copy_planes<uint8_t>(call, part, parts, copy_plane<uint8_t>);
    case 2: return copy_planes<uint16_t>(call, part, parts, copy_plane<uint16_t>);
    case 4: return copy_planes<float>(call, part, parts, copy_plane<float>);
    default: return copy_planes<uint64_t>(call, part, parts, copy_squares<uint64_t>);
  }
}

}  // namespace
}  // namespace lissome

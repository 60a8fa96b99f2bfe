// Turns squares of items of one or two bytes, rows into columns.
#pragma once

#include <emmintrin.h>

#include "lissome/kernel/isa/inline.h"
#include "lissome/kernel/move/copy_planes.h"

namespace lissome {
namespace {

LISSOME_INLINE __m128i interleave_low(__m128i a, __m128i b, uint8_t) { return _mm_unpacklo_epi8(a, b); }
LISSOME_INLINE __m128i interleave_low(__m128i a, __m128i b, uint16_t) { return _mm_unpacklo_epi16(a, b); }
LISSOME_INLINE __m128i interleave_high(__m128i a, __m128i b, uint8_t) { return _mm_unpackhi_epi8(a, b); }
LISSOME_INLINE __m128i interleave_high(__m128i a, __m128i b, uint16_t) { return _mm_unpackhi_epi16(a, b); }

// So many lines of so many items fill registers of 16 bytes.
template <typename T>
constexpr int kNarrowSquare = 16 / sizeof(T);

// Interleaving the lines of both halves moves the highest bit of an item's line below the bits of its column: after as
// many rounds as there are bits, lines and columns are exchanged.
template <typename T>
LISSOME_INLINE void turn_narrow_square(const T* x, int64_t x_line, T* y, int64_t y_line) {
  constexpr int kLines = kNarrowSquare<T>;
  __m128i lines[kLines], turned[kLines];
#pragma GCC unroll 16
  for (int i = 0; i < kLines; ++i) lines[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i * x_line));
#pragma GCC unroll 4
  for (int round = 1; round < kLines; round *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLines / 2; ++i) {
      turned[2 * i] = interleave_low(lines[i], lines[i + kLines / 2], T{});
      turned[2 * i + 1] = interleave_high(lines[i], lines[i + kLines / 2], T{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLines; ++i) lines[i] = turned[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLines; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i * y_line), lines[i]);
}

// The part of a plane from (row, column) on, `rows` by `columns`.
template <typename T>
CopyPlane<T> part_of(CopyPlane<T> p, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  p.x += row * p.x_row + column * p.x_column;
  p.y += row * p.y_row + column * p.y_column;
  p.rows = rows, p.columns = columns;
  return p;
}

// A plane whose rows lie beside each other in x, and whose columns in y. Blocks of both sides stay in the cache until
// their lines are whole.
template <typename T>
void turn_narrow_plane(const CopyPlane<T>& p) {
  constexpr int64_t kSquare = kNarrowSquare<T>, kBlock = 64 / sizeof(T);
  const int64_t rows = p.rows / kSquare * kSquare, columns = p.columns / kSquare * kSquare;
  for (int64_t row = 0; row < rows; row += kBlock) {
    const int64_t row_end = row + kBlock < rows ? row + kBlock : rows;
    for (int64_t column = 0; column < columns; column += kBlock) {
      const int64_t column_end = column + kBlock < columns ? column + kBlock : columns;
      for (int64_t i = row; i < row_end; i += kSquare) {
        for (int64_t j = column; j < column_end; j += kSquare)
          turn_narrow_square(p.x + i + j * p.x_column, p.x_column, p.y + i * p.y_row + j, p.y_row);
      }
    }
  }
  copy_squares(part_of(p, 0, columns, rows, p.columns - columns));
  copy_squares(part_of(p, rows, 0, p.rows - rows, p.columns));
}

}  // namespace
}  // namespace lissome

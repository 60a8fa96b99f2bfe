// Padding and rolls: bound by memory, so that one portable form serves all. Each row of y is a run of x between the
// elements around it.
#include <cstring>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/move/copy_piece.h"
#include "lissome/kernel/move/kernel_versions.h"
#include "lissome/kernel/move/move.h"

namespace lissome {
namespace {

// The element of x that stands at `index` of a dimension of y, counted from the first of x; -1 where none does.
inline int64_t find_padded(PadFill fill, int64_t index, int64_t size) {
  if (index >= 0 && index < size) return index;
  switch (fill) {
    case PadFill::constant: return -1;
    case PadFill::circular: return (index % size + size) % size;
    case PadFill::replicate: return index < 0 ? 0 : size - 1;
    case PadFill::reflect: break;
  }
  // One reflection is the common case, and a division costs as much as the copy of a short row.
  const int64_t mirrored = index < 0 ? -index : 2 * (size - 1) - index;
  if (mirrored >= 0 && mirrored < size) return mirrored;
  const int64_t period = size > 1 ? 2 * (size - 1) : 1, position = (index % period + period) % period;
  return position < size ? position : period - position;
}

// Goes through the rows of y in runs and finds the row of x that each takes, without a division for each row.
class RowCursor {
 public:
  RowCursor(const PadCall& call, int64_t row) : call_(call), outer_(call.rank - 1) {
    int64_t stride = call.x_sizes[outer_];
    for (int d = outer_ - 1; d >= 0; --d) {
      strides_[d] = stride;
      stride *= call.x_sizes[d];
      indices_[d] = row % call.y_sizes[d];
      row /= call.y_sizes[d];
    }
    find_offsets(0);
  }

  // Elements from the first of x to the first of the row; -1 where the row lies outside of x.
  int64_t offset() const { return offsets_[outer_]; }

  // How many rows from here take rows of x that follow on each other, or are all of the constant.
  int64_t run() const {
    if (outer_ == 0) return 1;
    const int d = outer_ - 1;
    const int64_t size = call_.x_sizes[d], index = indices_[d] - call_.before[d], left = call_.y_sizes[d] - indices_[d];
    if (offsets_[d] < 0 || index >= size) return call_.fill == PadFill::constant ? left : 1;
    const int64_t edge = index < 0 ? (call_.fill == PadFill::constant ? -index : 1) : size - index;
    return edge < left ? edge : left;
  }

  void advance(int64_t rows) {
    int d = outer_ - 1;
    if (d >= 0) indices_[d] += rows;
    while (d > 0 && indices_[d] == call_.y_sizes[d]) indices_[d--] = 0, ++indices_[d];
    find_offsets(d < 0 ? 0 : d);
  }

 private:
  void find_offsets(int first) {
    for (int d = first; d < outer_; ++d) {
      const int64_t index = find_padded(call_.fill, indices_[d] - call_.before[d], call_.x_sizes[d]);
      offsets_[d + 1] = offsets_[d] < 0 || index < 0 ? -1 : offsets_[d] + index * strides_[d];
    }
  }

  const PadCall& call_;
  const int outer_;  // dimensions that count rows
  int64_t strides_[kMoveRank] = {}, indices_[kMoveRank] = {};
  int64_t offsets_[kMoveRank] = {};  // [d]: what the first d indices add
};

template <typename T>
void fill_items(T* y, int64_t count, uint64_t value) {
  T item;
  std::memcpy(&item, &value, sizeof(T));
  for (int64_t i = 0; i < count; ++i) y[i] = item;
}

// How each row of y is made of a row of x: elements `begin` to `end` are a run of x.
struct RowShape {
  int64_t begin, end, size;  // of y
  int64_t from;              // of x, for `begin`
};

RowShape find_row_shape(const PadCall& call) {
  const int last = call.rank - 1;
  const int64_t size = call.y_sizes[last], before = call.before[last], behind = before + call.x_sizes[last];
  RowShape row = {before > 0 ? before : 0, behind < size ? behind : size, size, 0};
  if (row.begin >= row.end) row.begin = row.end = 0;
  row.from = row.begin - before;
  return row;
}

template <typename T>
void copy_items(T* y, const T* x, int64_t count) {
  copy_piece(reinterpret_cast<char*>(y), reinterpret_cast<const char*>(x), count * static_cast<int64_t>(sizeof(T)));
}

// Elements `begin` to `end` of a row of y, none of them inside of x.
template <typename T>
void fill_outside(const PadCall& call, const T* x, T* y, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (call.fill == PadFill::constant) return fill_items(y + begin, end - begin, call.value);
  const int last = call.rank - 1;
  const int64_t size = call.x_sizes[last], before = call.before[last];
  for (int64_t i = begin, run = 1; i < end; i += run) {
    const int64_t from = find_padded(call.fill, i - before, size);
    if (call.fill == PadFill::circular) run = size - from < end - i ? size - from : end - i;
    copy_items(y + i, x + from, run);
  }
}

// Rows inside of x. What lies between the run of one row and that of the next is filled at once.
template <typename T>
void pad_constant(const PadCall& call, const RowShape& row, const T* x, T* y, int64_t rows) {
  const int64_t x_size = call.x_sizes[call.rank - 1], run = row.end - row.begin, around = row.size - run;
  fill_items(y, row.begin, call.value);
  y += row.begin, x += row.from;
  for (int64_t r = 1; r < rows; ++r, x += x_size, y += row.size) {
    copy_items(y, x, run);
    fill_items(y + run, around, call.value);
  }
  copy_items(y, x, run);
  fill_items(y + run, row.size - row.end, call.value);
}

template <typename T>
void pad_row(const PadCall& call, const RowShape& row, const T* x, T* y) {
  fill_outside(call, x, y, 0, row.begin);
  copy_items(y + row.begin, x + row.from, row.end - row.begin);
  fill_outside(call, x, y, row.end, row.size);
}

constexpr int kFewOutside = 32;

// Which elements of a row of x the few elements of y outside of it are; false where they are many, or runs of x.
bool find_sources(const PadCall& call, const RowShape& row, int32_t (&sources)[kFewOutside]) {
  const int last = call.rank - 1;
  const bool single = call.fill == PadFill::reflect || call.fill == PadFill::replicate;
  const int64_t size = call.x_sizes[last];
  if (!single || row.size - (row.end - row.begin) > kFewOutside || size > INT32_MAX) return false;
  int32_t* source = sources;
  for (int64_t i = 0; i < row.size; ++i) {
    if (i == row.begin) i = row.end;
    if (i < row.size) *source++ = static_cast<int32_t>(find_padded(call.fill, i - call.before[last], size));
  }
  return true;
}

template <typename T>
void mirror_row(const RowShape& row, const int32_t* sources, const T* x, T* y) {
  for (int64_t i = 0; i < row.begin; ++i) y[i] = x[*sources++];
  copy_items(y + row.begin, x + row.from, row.end - row.begin);
  for (int64_t i = row.end; i < row.size; ++i) y[i] = x[*sources++];
}

// Rows inside of x, which follow on each other there. `sources` is null where find_sources() has none.
template <typename T>
void pad_run(const PadCall& call, const RowShape& row, const int32_t* sources, const T* x, T* y, int64_t rows) {
  if (call.fill == PadFill::constant) return pad_constant(call, row, x, y, rows);
  const int64_t x_size = call.x_sizes[call.rank - 1];
  for (int64_t r = 0; r < rows; ++r, x += x_size, y += row.size)
    sources != nullptr ? mirror_row(row, sources, x, y) : pad_row(call, row, x, y);
}

template <typename T>
void pad_rows(const PadCall& call, int part, int parts) {
  const int last = call.rank - 1;
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= call.y_sizes[d];
  const Range mine = split_evenly(rows, part, parts);
  if (mine.begin == mine.end) return;
  const RowShape shape = find_row_shape(call);
  int32_t sources[kFewOutside];
  const bool mirrors = find_sources(call, shape, sources);
  RowCursor cursor(call, mine.begin);
  T* y = static_cast<T*>(call.y) + mine.begin * shape.size;
  for (int64_t row = mine.begin; row < mine.end;) {
    const int64_t run = cursor.run() < mine.end - row ? cursor.run() : mine.end - row;
    if (cursor.offset() < 0)
      fill_items(y, run * shape.size, call.value);
    else
      pad_run(call, shape, mirrors ? sources : nullptr, static_cast<const T*>(call.x) + cursor.offset(), y, run);
    row += run, y += run * shape.size;
    cursor.advance(run);
  }
}

}  // namespace

void pad_portable(const PadCall& call, int part, int parts) {
  switch (call.item) {
    case 1: pad_rows<uint8_t>(call, part, parts); break;
    case 2: pad_rows<uint16_t>(call, part, parts); break;
    case 4: pad_rows<uint32_t>(call, part, parts); break;
    default: pad_rows<uint64_t>(call, part, parts); break;
  }
}

}  // namespace lissome

// Kernels that move bytes: strided copies, concatenations, padding, and rows chosen by index.
#pragma once

#include <cstdint>

namespace lissome {

inline constexpr int kMoveRank = 6;

// y, dense in the order of `sizes`, takes the elements of x.
struct CopyCall {
  const void* x = nullptr;
  void* y = nullptr;
  int64_t sizes[kMoveRank] = {};      // `rank` of them, outermost first
  int64_t x_strides[kMoveRank] = {};  // elements; may be zero
  int64_t y_strides[kMoveRank] = {};  // elements
  int rank = 1;
  int item = 4;  // bytes: 1, 2, 4, 8
};

inline constexpr int kConcatPieces = 32;

// y[outer, sum of widths] = the pieces x[i][outer, width], one beside the other. The runs of a piece begin `pitches`
// apart: its width where it is dense.
struct ConcatCall {
  const void* x[kConcatPieces] = {};
  void* y = nullptr;
  int64_t widths[kConcatPieces] = {}, pitches[kConcatPieces] = {};  // bytes
  int64_t outer = 1;
  int pieces = 0;
};

// What an element outside of x is.
enum class PadFill : uint8_t {
  constant,   // PadCall::value
  circular,   // x goes on from its other end, cut elements too; with as much cut as is added, x is rolled
  reflect,    // x is mirrored at its first and last element, which are not repeated
  replicate,  // the nearest element of x
};

// y = x with more around it: x lies in y from `before` on. Negative numbers cut x instead.
struct PadCall {
  const void* x = nullptr;                                                           // dense
  void* y = nullptr;                                                                 // dense
  int64_t x_sizes[kMoveRank] = {}, y_sizes[kMoveRank] = {}, before[kMoveRank] = {};  // `rank` of them, outermost first
  int rank = 1;
  PadFill fill = PadFill::constant;
  int item = 4;        // bytes: 1, 2, 4, 8
  uint64_t value = 0;  // its first bytes are those of an item
};

// How the rows of a table lie: one behind the other, or packed as linear_f32 or linear_bf16 read a weight.
enum class TableLayout : uint8_t { rows, linear_f32, linear_bf16 };

// y[i] = table[indices[i]], rows of `row_bytes`. An index outside of [-rows, rows) sets *fault and writes zeros.
struct GatherRowsCall {
  const void* table = nullptr;
  const void* indices = nullptr;  // i64, or i32
  void* y = nullptr;
  int64_t* fault = nullptr;
  int64_t fault_code = 0;
  int64_t rows = 0, row_bytes = 0, count = 0;
  bool narrow_indices = false;
  bool negative_allowed = false;  // counts from the end, as indexing does; embeddings refuse
  TableLayout layout = TableLayout::rows;
};

}  // namespace lissome

// The blocks that an element-wise call is cut into, and where its operands begin in each. Static: see split.h.
#pragma once

#include "lissome/kernel/elementwise/elementwise.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Neighbours in the result, at most kElementBlock: a part of one innermost row, or several whole rows.
struct ElementBlock {
  int64_t offsets[kElementOperands];  // of each operand's first element
  int64_t y_at = 0, rows = 1, length = 0;
  int64_t count() const { return rows * length; }
};

// run(block) for each block of the part. Short rows are taken together: a chain has its cost for each instruction of a
// block, which a row of 64 elements does not carry.
template <typename Run>
inline __attribute__((always_inline)) void for_each_element_block(const ElementwiseCall& call, int part, int parts,
                                                                  const Run& run) {
  const int inner = call.rank - 1;
  const int64_t length = call.sizes[inner];
  const bool joins = inner > 0 && length > 0 && length <= kElementBlock / 2;
  const int cut = joins ? inner - 1 : inner;  // the dimension that is cut into blocks
  const int64_t step = joins ? kElementBlock / length : kElementBlock;
  int64_t outer = 1;
  for (int d = 0; d < cut; ++d) outer *= call.sizes[d];
  const int64_t blocks = (call.sizes[cut] + step - 1) / step;
  const Range range = split_evenly(outer * blocks, part, parts);
  for (int64_t at = range.begin; at < range.end; ++at) {
    const int64_t first = at % blocks * step;
    const int64_t taken = call.sizes[cut] - first < step ? call.sizes[cut] - first : step;
    ElementBlock block;
    block.rows = joins ? taken : 1;
    block.length = joins ? length : taken;
    block.y_at = (at / blocks * call.sizes[cut] + first) * (joins ? length : 1);
    for (int i = 0; i < call.operands; ++i) block.offsets[i] = first * call.strides[i][cut];
    int64_t rest = at / blocks;
    for (int d = cut - 1; d >= 0; --d) {
      const int64_t index = rest % call.sizes[d];
      rest /= call.sizes[d];
      for (int i = 0; i < call.operands; ++i) block.offsets[i] += index * call.strides[i][d];
    }
    run(block);
  }
}

// How far an operand's rows lie apart in a block that has several.
inline int64_t row_stride(const ElementwiseCall& call, int operand) {
  return call.rank > 1 ? call.strides[operand][call.rank - 2] : 0;
}

// Whether the operand's rows follow each other as the elements of one do.
inline bool is_one_row(const ElementwiseCall& call, int operand, const ElementBlock& block) {
  return block.rows == 1 || row_stride(call, operand) == block.length * call.strides[operand][call.rank - 1];
}

}  // namespace
}  // namespace lissome

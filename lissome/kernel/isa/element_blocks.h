// The blocks that an element-wise call is cut into, and where its operands begin in each. Static: see split.h.
#pragma once

#include "lissome/kernel/elementwise/elementwise.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// run(offsets of the operands, offset of y, count) for each block of the part.
template <typename Run>
inline __attribute__((always_inline)) void for_each_element_block(const ElementwiseCall& call, int part, int parts,
                                                                  const Run& run) {
  const int inner = call.rank - 1;
  const int64_t length = call.sizes[inner];
  int64_t outer = 1;
  for (int d = 0; d < inner; ++d) outer *= call.sizes[d];
  const int64_t blocks = (length + kElementBlock - 1) / kElementBlock;
  const Range range = split_evenly(outer * blocks, part, parts);
  for (int64_t at = range.begin; at < range.end; ++at) {
    const int64_t row = at / blocks, first = at % blocks * kElementBlock;
    const int64_t count = length - first < kElementBlock ? length - first : kElementBlock;
    int64_t offsets[kElementOperands];
    for (int i = 0; i < call.operands; ++i) offsets[i] = first * call.strides[i][inner];
    int64_t rest = row;
    for (int d = inner - 1; d >= 0; --d) {
      const int64_t index = rest % call.sizes[d];
      rest /= call.sizes[d];
      for (int i = 0; i < call.operands; ++i) offsets[i] += index * call.strides[i][d];
    }
    run(offsets, row * length + first, count);
  }
}

}  // namespace
}  // namespace lissome

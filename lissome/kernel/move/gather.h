// Elements chosen by index: y[p] = x[p * x_strides + sum over i of indices[i][p * index_strides[i]] * steps[i]] for
// every place p of `sizes`. With strides of zero where a dimension does not matter this is indexing by tensors (which
// broadcast to each other), gather along a dimension, and rows of a table.
#pragma once

#include <cstdint>

namespace lissome {

inline constexpr int kGatherRank = 8;
inline constexpr int kGatherIndices = 4;

// An index outside of [-limit, limit) sets *fault and writes zeros.
struct GatherCall {
  const void* x = nullptr;
  void* y = nullptr;                         // dense in the order of `sizes`
  const void* indices[kGatherIndices] = {};  // i64, or i32
  int64_t* fault = nullptr;
  int64_t fault_code = 0;
  int64_t sizes[kGatherRank] = {};      // `rank` of them, outermost first
  int64_t x_strides[kGatherRank] = {};  // elements
  int64_t index_strides[kGatherIndices][kGatherRank] = {};
  int64_t steps[kGatherIndices] = {};   // elements of x from one value of the index to the next
  int64_t limits[kGatherIndices] = {};  // how many values of the index there are
  bool narrow[kGatherIndices] = {};     // i32
  int rank = 1, count = 0;              // of dimensions, of indices
  int item = 4;                         // bytes: 1, 2, 4, 8
  bool negative_allowed = false;        // counts from the end
};

}  // namespace lissome

// Adam with states of one byte a number: blocks of 256 share a scale, their largest magnitude, and a byte says where
// below it a number lies, on a dynamic tree (Dettmers et al. 2021, arXiv 2110.02861): seven decades, the upper ones cut
// into more bins. A block is widened, updated as AdamCall says, and narrowed again while it is in the nearest cache.
#pragma once

#include <cstdint>

#include "lissome/kernel/optimizer/optimizer.h"

namespace lissome {

inline constexpr int64_t kByteBlock = 256;
inline constexpr int kDecades = 7;

struct Adam8BitCall {
  AdamCall adam;                                         // mean and square are not read
  uint8_t *mean = nullptr, *square = nullptr;            // [count]
  float *mean_scale = nullptr, *square_scale = nullptr;  // [ceil(count / kByteBlock)]
};

// Bin j of decade d is 2^d + j for magnitudes in 10^(d-7) .. 10^(d-6), in 2^d bins, the byte's top bit the sign; a bin
// stands for its middle. 0 is zero, and what would be minus zero stands for one. Means are like that. Squares have no
// sign and twice as many bins: 2^(d+1) + j, 0 is zero and 1 is one. Static: see split.h.
namespace {

struct ByteValues {
  float of[256] = {};
};

constexpr ByteValues list_byte_values(bool has_sign) {
  ByteValues values;
  double decade = 1e-6;
  for (int d = 0; d < kDecades; ++d, decade *= 10) {
    const int bins = has_sign ? 1 << d : 2 << d;
    for (int j = 0; j < bins; ++j) {
      const double middle = decade * (0.1 + 0.9 * (j + 0.5) / bins);
      values.of[bins + j] = static_cast<float>(middle);
      if (has_sign) values.of[128 + bins + j] = static_cast<float>(-middle);
    }
  }
  values.of[has_sign ? 128 : 1] = 1;
  return values;
}
constexpr ByteValues kMeanValues = list_byte_values(true);
constexpr ByteValues kSquareValues = list_byte_values(false);

// The update of one block, its states widened into `mean` and `square`.
[[maybe_unused]] AdamCall adam_on_block(const Adam8BitCall& call, int64_t at, int64_t size, float* mean,
                                        float* square) {
  AdamCall block = call.adam;
  block.on.weight += at, block.on.gradient += at, block.on.count = size;
  if (block.on.bf16_copy) block.on.bf16_copy += at;
  block.mean = mean, block.square = square;
  return block;
}

}  // namespace
}  // namespace lissome

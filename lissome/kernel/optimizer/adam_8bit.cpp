// The portable form: widens a block, lets the portable adam update it, narrows it number by number.
#include "lissome/kernel/optimizer/adam_8bit.h"

#include <algorithm>
#include <cmath>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/optimizer/kernel_versions.h"

namespace lissome {
namespace {

// The bin of a magnitude in 0..1, of 2^(d + shift) in decade d; 0 below the lowest.
int find_bin(double magnitude, int shift) {
  double decade = 1;
  for (int d = kDecades - 1; d >= 0; --d, decade /= 10) {
    if (magnitude < decade / 10) continue;
    const int bins = 1 << (d + shift);
    return bins + std::min(static_cast<int>((magnitude / decade - 0.1) / 0.9 * bins), bins - 1);
  }
  return 0;
}

uint8_t narrow_mean(double share) {
  if (share >= 1) return 128;
  const int bin = find_bin(std::fabs(share), 0);
  return static_cast<uint8_t>(share < 0 && bin > 0 ? bin + 128 : bin);
}

// Never zero for what is not: a mean over a square root of zero would be a huge step.
uint8_t narrow_square(double share) {
  if (share >= 1) return 1;
  return static_cast<uint8_t>(share > 0 ? std::max(find_bin(share, 1), 2) : 0);
}

template <typename Narrow>
void narrow_block(const float* values, int64_t count, uint8_t* bytes, float& scale, const Narrow& narrow) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::fmax(largest, std::fabs(values[i]));
  scale = largest;
  for (int64_t i = 0; i < count; ++i) {
    bytes[i] = largest > 0 ? narrow(static_cast<double>(values[i]) / static_cast<double>(largest)) : 0;
  }
}

}  // namespace

void adam_8bit_portable(const Adam8BitCall& call, int part, int parts) {
  const int64_t count = call.adam.on.count;
  const Range mine = split_evenly((count + kByteBlock - 1) / kByteBlock, part, parts);
  float mean[kByteBlock], square[kByteBlock];
  for (int64_t block = mine.begin; block < mine.end; ++block) {
    const int64_t at = block * kByteBlock, size = std::min(kByteBlock, count - at);
    for (int64_t i = 0; i < size; ++i) {
      mean[i] = kMeanValues.of[call.mean[at + i]] * call.mean_scale[block];
      square[i] = kSquareValues.of[call.square[at + i]] * call.square_scale[block];
    }
    adam_portable(adam_on_block(call, at, size, mean, square), 0, 1);
    narrow_block(mean, size, call.mean + at, call.mean_scale[block], narrow_mean);
    narrow_block(square, size, call.square + at, call.square_scale[block], narrow_square);
  }
}

}  // namespace lissome

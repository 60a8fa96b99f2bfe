// Group norm of channels-last values, f32 or bf16; sums and everything between load and store in f32.
#pragma once

#include <cstdint>

#include "lissome/kernel/elementwise/activation.h"

namespace lissome {

inline constexpr int64_t kMostGroupChannels = 4096;  // of one group

// y = activation((x - mean) / sqrt(variance + epsilon) * weight + bias); mean and variance are those of one image's
// channels of a group over all positions.
template <typename T>
struct GroupNormCallOf {
  const T* x = nullptr;       // [batch, positions, channels]
  const T* weight = nullptr;  // [channels], or null
  const T* bias = nullptr;    // [channels], or null
  T* y = nullptr;             // may be x itself
  int64_t batch = 0, positions = 0, channels = 0, groups = 1;
  float epsilon = 0;
  Epilogue epilogue;
};
using GroupNormCall = GroupNormCallOf<float>;
using GroupNormBf16Call = GroupNormCallOf<uint16_t>;

}  // namespace lissome

// Group norm of channels-last values.
#pragma once

#include <cstdint>

namespace lissome {

inline constexpr int64_t kMostGroupChannels = 4096;  // of one group

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias; mean and variance are those of one image's channels
// of a group over all positions.
struct GroupNormCall {
  const float* x = nullptr;       // [batch, positions, channels]
  const float* weight = nullptr;  // [channels], or null
  const float* bias = nullptr;    // [channels], or null
  float* y = nullptr;             // may be x itself
  int64_t batch = 0, positions = 0, channels = 0, groups = 1;
  float epsilon = 0;
};

}  // namespace lissome

// Batch norm in training form over rows of channels (channels-last values, a row a pixel), cut into steps so that what
// they pass on is a few numbers a channel: sums over rows -> statistics or gradients -> an affine map of each channel.
// Rows are f32, or bf16 (uint16_t), which is widened before anything is computed and rounded once; all else is wide.
// What comes in may be the gradient of what was max pooled after the norm: its rows are then gathered where they are
// asked for, with the bits that max_pool_gradient would have given them, and never lie anywhere.
#pragma once

#include <cstdint>

#include "lissome/kernel/pool/max_pool.h"

namespace lissome {

// Rows are summed in so many blocks, whatever the number of parts: their sums are added in one order.
inline constexpr int64_t kChannelBlocks = 16;

// Per block and channel, without dy: the sums of x - x[0] and of its square; with dy: of dy and of dy * (x - mean).
// Where a mask is given and not above zero, dy counts as 0 (a NaN in the mask lets it pass, as threshold_backward).
// With mask_scale, mask_scale * mask + mask_shift is asked, by the very arithmetic of the channel_affine that made it.
template <typename T>
struct ChannelSumsCallOf {
  const T* x = nullptr;              // [rows, channels]; null: dy alone is summed, the second sums are 0
  const T* dy = nullptr;             // [rows, channels], or null; with indices [batch, out_height, out_width, channels]
  const T* mask = nullptr;           // [rows, channels], or null
  const uint8_t* indices = nullptr;  // as dy, or null
  const float* mean = nullptr;       // [channels], with dy and x
  const float *mask_scale = nullptr, *mask_shift = nullptr;  // [channels], both or none
  double* sums = nullptr;                                    // [kChannelBlocks, 2, channels]
  int64_t rows = 0, channels = 0;
  Window window;  // with indices: of the pooling whose x has the rows
};
using ChannelSumsCall = ChannelSumsCallOf<float>;
using ChannelSumsBf16Call = ChannelSumsCallOf<uint16_t>;

// Mean, 1 / sqrt(variance + epsilon), the running statistics after this batch, and y = scale * x + shift.
template <typename T>
struct BatchNormStatisticsCallOf {
  const double* sums = nullptr;
  const T* x = nullptr;                                         // its first row
  const float *weight = nullptr, *bias = nullptr;               // [channels], or null: 1 and 0
  const float *running_mean = nullptr, *running_var = nullptr;  // [channels]
  float *mean = nullptr, *reciprocal_deviation = nullptr;       // [channels], as the others
  float *new_mean = nullptr, *new_var = nullptr;
  float *scale = nullptr, *shift = nullptr;
  double momentum = 0.1, epsilon = 1e-5;
  int64_t rows = 0, channels = 0;
};
using BatchNormStatisticsCall = BatchNormStatisticsCallOf<float>;
using BatchNormStatisticsBf16Call = BatchNormStatisticsCallOf<uint16_t>;

// Gradients of weight and bias, and dx = dy_scale * dy + x_scale * (x - mean) + shift.
struct BatchNormGradientsCall {
  const double* sums = nullptr;
  const float* weight = nullptr;  // or null: 1
  const float* reciprocal_deviation = nullptr;
  float *weight_gradient = nullptr, *bias_gradient = nullptr;
  float *dy_scale = nullptr, *x_scale = nullptr, *shift = nullptr;
  int64_t rows = 0, channels = 0;
};

// total[c]: the first sums of all blocks.
struct ChannelTotalsCall {
  const double* sums = nullptr;
  float* total = nullptr;
  int64_t channels = 0;
};

// y = activate(scale * (mask > 0 ? x : 0) + z_scale * (z - z_center) + shift), a row after the other. Where there is
// no z_scale it counts as 1, without z_center as 0; without z that term is absent.
template <typename T>
struct ChannelAffineCallOf {
  const T *x = nullptr, *z = nullptr, *mask = nullptr;  // [rows, channels]; z and mask may be null
  const uint8_t* indices = nullptr;                     // or null; with them x is as dy in sums
  const float *scale = nullptr, *shift = nullptr, *z_scale = nullptr, *z_center = nullptr;  // [channels]
  const float *mask_scale = nullptr, *mask_shift = nullptr;  // [channels], both or none: as in sums
  T* y = nullptr;                                            // [rows, channels]; may be x or z
  bool relu = false;
  int64_t rows = 0, channels = 0;
  Window window;  // as in sums
};
using ChannelAffineCall = ChannelAffineCallOf<float>;
using ChannelAffineBf16Call = ChannelAffineCallOf<uint16_t>;

}  // namespace lissome

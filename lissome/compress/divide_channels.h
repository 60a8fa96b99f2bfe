// Divides a value by a factor for each channel and multiplies what the weights of its readers, linears or convolutions,
// have for that channel by the same factors, which is exact in float. smooth_channels chooses the factors so that
// channels have similar ranges for the quantization that follows.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

// Where the value is divided: in the weights of the norm, linear or convolution that computes it, at no cost, or by a
// product of its own if another op computes it or another node reads it.
enum class DividerPlace : uint8_t { norm, linear, convolution, product };

struct ChannelDivision {
  ValueId value = ValueId::none;
  // Positions of the linears or of the convolutions that read it, with constant f32 weights [out, channels (of a
  // group), ...]. Convolutions are divided where that costs nothing alone.
  std::vector<size_t> readers;
  at::Tensor factors;  // f64 [channels], along the value's last dimension, or the second one for convolutions
};

// Chooses no product only if `readers` alone read the value, through their first argument. Between a convolution and
// its readers may stand what works on each channel alone and gives twice as much for twice as much: ReLU, pooling.
DividerPlace find_divider_place(const Program& program, const Uses& uses, ValueId value,
                                const std::vector<size_t>& readers);

// The program with these values divided. Each value may be in one division. Changed weights become new constants, so
// that other readers keep the old ones.
Program divide_channels(const Program& program, const std::vector<ChannelDivision>& divisions);

// [outputs, 1, ...]: a factor for all weights of an output, beside the weight's other dimensions.
at::Tensor spread_outputs(const at::Tensor& factors, const at::Tensor& weight);

// f64, of the sizes of a convolution's weight [out, channels of a group, ...]: the factor of the channel that each
// weight is multiplied by.
at::Tensor spread_factors(const at::Tensor& factors, const at::Tensor& weight);

}  // namespace lissome

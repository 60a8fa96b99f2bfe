// Divides a value by a factor for each channel and multiplies the columns of the linears that read it by the same
// factors, which is exact in float. smooth_channels chooses the factors so that channels have similar ranges for the
// quantization that follows.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

// Where the value is divided: in the weights of the norm or the linear that computes it, at no cost, or by a product of
// its own if another op computes it or another node reads it.
enum class DividerPlace : uint8_t { norm, linear, product };

struct ChannelDivision {
  ValueId value = ValueId::none;
  std::vector<size_t> linears;  // positions of the linears that read it, with constant f32 weights [out, channels]
  at::Tensor factors;           // f64 [channels], along the value's last dimension
};

// Chooses norm or linear only if `linears` alone read the value, through their first argument.
DividerPlace find_divider_place(const Program& program, const Uses& uses, ValueId value,
                                const std::vector<size_t>& linears);

// The program with these values divided. Each value may be in one division. Changed weights become new constants, so
// that other readers keep the old ones.
Program divide_channels(const Program& program, const std::vector<ChannelDivision>& divisions);

}  // namespace lissome

// Exact in float: a value is divided by a factor a channel, and the columns of the linears that read it are multiplied
// by the same factors. smooth_channels chooses the factors; quantization comes after, and gains by channels alike.
#pragma once

#include <vector>

#include "lissome/program.h"

namespace lissome {

// What divides the value: the norm or the linear that makes it, in its weights, at no cost; or a product of its own,
// where something else reads the value too or makes it.
enum class DividerPlace : uint8_t { norm, linear, product };

struct ChannelDivision {
  ValueId value = ValueId::none;
  std::vector<size_t> linears;  // positions of those that read it, with constant f32 weights [out, channels]
  at::Tensor factors;           // f64 [channels], along the value's last dimension
};

// Only where nothing but `linears` reads the value through its first argument does its maker divide.
DividerPlace find_divider_place(const Program& program, const Uses& uses, ValueId value,
                                const std::vector<size_t>& linears);

// The program with these values divided; each value stands in one division at most. What a weight becomes is a new
// constant, so that others who read it keep theirs.
Program divide_channels(const Program& program, const std::vector<ChannelDivision>& divisions);

}  // namespace lissome

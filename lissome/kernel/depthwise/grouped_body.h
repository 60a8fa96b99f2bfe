// The grouped convolution in f32 over Floats.
#pragma once

#include "lissome/kernel/depthwise/grouped_lanes_body.h"

namespace lissome {
namespace {

template <typename Groups>
struct WideWeighed : Groups, WideWeights {
  using Groups::Groups;
};

LISSOME_INLINE void run_grouped_f32(const DepthwiseF32Call& call, int part, int parts) {
  choose_groups<WideWeighed<SmallGroups>, WideWeighed<WideGroups>>(
      call.group, [&](const auto& groups) { run_depthwise(call, part, parts, groups); });
}

}  // namespace
}  // namespace lissome

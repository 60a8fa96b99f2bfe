// The function that lissome_kernel() names for each instruction set in f32: bf16 has one more than f32. The work is in
// depthwise_body.h.
#pragma once

#include "lissome/kernel/depthwise/depthwise_body.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_depthwise_f32(const DepthwiseF32Call& call, int part, int parts) {
  run_depthwise(call, part, parts);
}

}  // namespace
}  // namespace lissome

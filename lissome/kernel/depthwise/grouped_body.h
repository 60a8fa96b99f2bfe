// The grouped convolutions over Floats.
#pragma once

#include "lissome/kernel/depthwise/grouped_lanes_body.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_grouped_f32(const DepthwiseF32Call& call, int part, int parts) {
  run_grouped(call, part, parts);
}
LISSOME_INLINE void run_grouped_bf16(const DepthwiseBf16Call& call, int part, int parts) {
  run_grouped(call, part, parts);
}

}  // namespace
}  // namespace lissome

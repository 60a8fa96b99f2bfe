// The function that lissome_kernel() names where there are no tile registers; see grouped_pairs_body.h.
#pragma once

#include "lissome/kernel/depthwise/grouped_pairs_body.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_grouped_bf16(const GroupedBf16Call& call, int part, int parts) {
  run_group_pairs(call, part, parts);
}

}  // namespace
}  // namespace lissome

// The smallest arena by branch and bound, for the few buffers where that ends.
#pragma once

#include <cstdint>
#include <vector>

#include "lissome/runtime/memory/memory_plan.h"

namespace lissome {

struct MemorySearch {
  int64_t bytes = 0;             // of the best placement found
  std::vector<int64_t> offsets;  // empty when nothing below `limit` was found
  bool exhausted = false;        // every placement was looked at or ruled out: there is nothing smaller
};

// Looks for a placement in fewer than `limit` bytes, for a bounded number of tries. Sizes are multiples of the
// alignment already.
MemorySearch search_memory(const std::vector<PlannedBuffer>& buffers, int64_t limit);

}  // namespace lissome

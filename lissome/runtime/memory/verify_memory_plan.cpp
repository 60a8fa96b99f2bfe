// Judges a memory plan step by step over byte ranges; shares no code with the planner.
#include <algorithm>
#include <sstream>

#include "lissome/runtime/memory/memory_plan.h"

namespace lissome {

std::string verify_memory_plan(const std::vector<PlannedBuffer>& buffers, int64_t arena_bytes) {
  std::ostringstream fault;
  int last = -1;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const PlannedBuffer& buffer = buffers[i];
    if (buffer.offset < 0 || buffer.offset % 64 != 0 || buffer.bytes > arena_bytes - buffer.offset) {
      fault << "buffer " << i << " of " << buffer.bytes << " bytes at " << buffer.offset << " leaves the arena of "
            << arena_bytes << " bytes or its alignment";
      return fault.str();
    }
    last = std::max(last, buffer.last_step);
  }
  for (int step = 0; step <= last; ++step) {
    std::vector<size_t> alive;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].first_step <= step && step <= buffers[i].last_step && buffers[i].bytes > 0) alive.push_back(i);
    }
    std::sort(alive.begin(), alive.end(),
              [&](size_t left, size_t right) { return buffers[left].offset < buffers[right].offset; });
    for (size_t i = 1; i < alive.size(); ++i) {
      const PlannedBuffer& before = buffers[alive[i - 1]];
      if (before.offset + before.bytes > buffers[alive[i]].offset) {
        fault << "at step " << step << " buffers " << alive[i - 1] << " and " << alive[i] << " share bytes";
        return fault.str();
      }
    }
  }
  return {};
}

}  // namespace lissome

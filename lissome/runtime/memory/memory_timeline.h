// What lies in the arena of a session over the steps of a run, told without running it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lissome/runtime/plan/plan.h"

namespace lissome {

struct HeldValue {
  int64_t bytes = 0;
  int step = 0;  // of the plan: what made it
};

struct MemoryTimeline {
  int64_t reserved = 0;                  // bytes of the arena
  std::vector<int64_t> values, scratch;  // bytes, by step of the plan
  int peak_step = 0;                     // where values and scratch are most; -1 without steps
  std::vector<HeldValue> at_peak;        // values alive there, largest first

  int64_t total(int step) const { return values[static_cast<size_t>(step)] + scratch[static_cast<size_t>(step)]; }
};

// `inputs` in the plan's order, `threads` as the session has them. Throws what a session throws for such inputs.
MemoryTimeline trace_arena(const Plan& plan, std::span<const Sizes> inputs, int threads);

}  // namespace lissome

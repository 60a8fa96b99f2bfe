// What a run of a plan takes for inputs of certain sizes, told without running it: sizes and offsets alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lissome/runtime/plan/plan.h"

namespace lissome {

struct Footprint {
  int64_t arena_bytes = 0;             // as the planner lays it out: what a session will reserve
  std::vector<int64_t> value_bytes;    // by value: in the arena, of its own; 0 for views and for what lies elsewhere
  std::vector<int64_t> scratch_bytes;  // by step: that only the step uses, while it runs
  // By step: operands in whose memory its only result will lie where they are not needed any more.
  std::vector<std::vector<PlanValueId>> in_place;
};

// `inputs` in the plan's order, `threads` as the session will have them. Throws what a session throws for such inputs.
Footprint find_footprint(const Plan& plan, std::span<const Sizes> inputs, int threads);

}  // namespace lissome

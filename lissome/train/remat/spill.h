// Spills values of a plan that stay idle for long: each is stored in another form behind the last step that touches it
// and restored before the next. Works on a plan, so that passes and fusions do not see the spill.
#pragma once

#include <cstdint>
#include <span>

#include "lissome/runtime.h"

namespace lissome {

struct SpillKind {
  int64_t least_bytes = 0;                 // smaller values are not spilled
  bool (*allows)(const PlanValue& value);  // whether this value may be spilled, beside its size
  PlanValue (*store)(PlanValue value);     // the value that replaces it in the arena while it is idle
  int64_t (*count_saved)(int64_t bytes);   // of so many spilled bytes, how many leave the arena
  // The steps that store and restore.
  PlanStep (*make_store)(PlanValueId from, PlanValueId to);
  PlanStep (*make_restore)(PlanValueId from, PlanValueId to);
};

struct Spills {
  int values = 0;
  int64_t bytes = 0;  // of the values before they were stored
};

// Spills values that are idle where the arena is fullest, the largest first, until the arena takes at most `wanted`
// bytes or no spill would help. Outputs and values that libtorch holds stay. `inputs` and `threads` as for
// find_footprint().
Spills spill_values(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted, const SpillKind& kind);

}  // namespace lissome

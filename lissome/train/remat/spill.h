// Values of a plan that wait for long, sent on a spill: stored in another form behind the last step that touches them,
// and made what they were before the next. Works on a plan, so that no pass or fusion sees the spill.
#pragma once

#include <cstdint>
#include <span>

#include "lissome/runtime.h"

namespace lissome {

struct SpillKind {
  int64_t least_bytes = 0;                 // of a value that is worth it
  bool (*allows)(const PlanValue& value);  // beside being of that size
  PlanValue (*store)(PlanValue value);     // what takes its place in the arena while it waits
  int64_t (*count_saved)(int64_t bytes);   // of so many, how many leave the arena
  PlanStep (*make_store)();                // the steps there and back, without operands and results
  PlanStep (*make_restore)();
};

struct Spills {
  int values = 0;
  int64_t bytes = 0;  // of these, as they were
};

// Values that wait where the arena is fullest, the largest first, until the arena takes no more than `wanted` bytes or
// nothing is left that would help. Only those that are no outputs, and that libtorch does not hold on to. `inputs` and
// `threads` as for find_footprint().
Spills send_on_spill(Plan& plan, std::span<const Sizes> inputs, int threads, int64_t wanted, const SpillKind& kind);

}  // namespace lissome

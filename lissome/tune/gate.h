// Decides whether a step pays: it must be faster or smaller beyond noise and stay inside the memory goal.
#pragma once

#include <string>

#include "lissome/tune/variant.h"

namespace lissome {

struct Verdict {
  bool accepted = false;
  bool over_goal = false;  // the step needs more memory than the goal and than before
  std::string reason;      // one sentence with the numbers
  double seconds_before = 0, seconds_after = 0;
  Ratio ratio;  // after / before
  int64_t memory_before = 0, memory_after = 0;
};

struct GateOptions {
  std::optional<int64_t> memory_goal;
  double seconds = 4;  // for interleaved runs
  uint64_t seed = 0;
  std::function<bool()> should_stop;
};

// Judges only speed and memory. The quality of lossy steps that pass is judged separately.
Verdict judge_speed(Variant& before, Variant& after, const Bench& bench, const GateOptions& options);

}  // namespace lissome

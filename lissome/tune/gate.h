// Whether a step pays: faster or smaller beyond noise, inside the memory goal, within the loss.
#pragma once

#include <string>

#include "lissome/tune/variant.h"

namespace lissome {

struct Verdict {
  bool accepted = false;
  bool over_goal = false;  // needs more memory than the goal, and than before
  std::string reason;      // one sentence with the figures
  double seconds_before = 0, seconds_after = 0;
  Ratio ratio;  // after / before
  int64_t memory_before = 0, memory_after = 0;
};

struct GateOptions {
  std::optional<int64_t> memory_goal;
  double seconds = 4;  // of interleaved running
  uint64_t seed = 0;
  std::function<bool()> should_stop;
};

// Speed and memory alone; quality is judged apart, for lossy steps that passed here.
Verdict judge_speed(Variant& before, Variant& after, const Bench& bench, const GateOptions& options);

}  // namespace lissome

// Decides whether a step pays: it must be faster or smaller beyond noise and stay inside the goals, or bring the model
// closer to one that it misses.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lissome/tune/variant.h"

namespace lissome {

struct Verdict {
  bool accepted = false;
  bool over_goal = false;  // the step needs more memory or a larger file than a goal and than before
  std::string reason;      // one sentence with the numbers
  double seconds_before = 0, seconds_after = 0;
  Ratio ratio;  // after / before
};

struct GateOptions {
  double seconds = 4;  // for interleaved runs
  // Whether fresh sessions must show a small gain too. Not for a step that is kept for other reasons: it takes long.
  bool confirm = true;
  std::function<bool()> should_stop;
  std::function<double()> now = {};  // see InterleaveOptions
};

// One call of the version before a step and of the version after it.
struct Calls {
  std::function<void()> before, after;
};

// Bytes of one kind that the two versions need, and the most that a goal allows.
struct Need {
  int64_t before = 0, after = 0;
  std::optional<int64_t> goal;

  bool exceeds() const { return goal && after > *goal && after > before; }
  bool comes_closer() const;  // before is above the goal, and after is smaller by more than trifles
};

struct Rivals {
  Calls calls;
  std::function<Calls()> open_elsewhere;  // the same two versions in memory of other addresses
  Need memory, size;                      // bytes at the peak of one call, and of the file
  std::optional<double> latency_goal;     // seconds; no goal for bytes is pursued beyond it
};
// `before` and `after` must outlive the result, and `bench` too.
Rivals open_rivals(Variant& before, Variant& after, const Bench& bench, const Goal& goal);

// Judges only speed and bytes. The quality of lossy steps that pass is judged separately. Runs in rounds until the
// interval of the ratio decides, for at most options.seconds and as much again to confirm a small gain. A step without
// gain is accepted with a probability of at most 0.1 %, whatever the noise, as long as it favours neither version.
Verdict judge_speed(const Rivals& rivals, const GateOptions& options);

}  // namespace lissome

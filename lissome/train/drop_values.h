// Schedules by what is given up: memory is freed after a node has touched it, and made again where it is read next.
#pragma once

#include <set>
#include <utility>

#include "lissome/train/step_model.h"

namespace lissome {

// Owning value and the position of the schedule at hand after which it goes. Who reads it next has it made again, with
// what that takes; from there it stays until its last reader, unless a drop after that position ends it again.
using Drops = std::set<std::pair<int, int>>;

struct DropSchedule {
  RunOrder schedule;
  std::vector<int> purpose;  // by position: that of the schedule at hand for whose sake it runs, itself among them
};

// What unrepeatable nodes made stays where making something again needs it.
DropSchedule make_drop_schedule(const StepModel& model, const RunOrder& base, const Drops& drops);

struct FittedSchedule {
  RunOrder schedule;
  ScheduleCost cost;
  bool fits = false;  // cost.peak <= limit; else nothing lower was found
};

// Greedy, in several ways: at the peak, what frees most bytes above the limit for a second goes first; then every drop
// that the others made needless is taken back. Starts from `base`, which may recompute already, and from `drops` of it.
FittedSchedule fit_by_drops(const StepModel& model, const RunOrder& base, int64_t limit, const Drops& drops = {});

}  // namespace lissome

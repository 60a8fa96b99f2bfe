// Two ways to run a step, measured against each other.
#pragma once

#include <functional>
#include <string>

namespace lissome {

struct StepRace {
  bool pays = false;   // the second takes at most nine tenths of the first one's time, for certain
  std::string factor;  // for people: "0.52 times as long [0.50, 0.55]", the second's time over the first's
};

// In turns, each time the second of two runs: the first makes room for other sizes, and does not count.
StepRace compare_step_times(const std::function<void()>& first, const std::function<void()>& second);

}  // namespace lissome

// Compares the times of two ways to run a step.
#pragma once

#include <functional>
#include <string>

namespace lissome {

struct StepComparison {
  bool pays = false;   // the second takes at most 0.9 of the first one's time, at the upper end of the interval
  std::string factor;  // for people: "0.52 times as long [0.50, 0.55]", the time of the second over that of the first
};

// Runs both in turns. Of two runs each time, only the second is timed: the first may have to make room for other sizes.
StepComparison compare_step_times(const std::function<void()>& first, const std::function<void()>& second);

}  // namespace lissome

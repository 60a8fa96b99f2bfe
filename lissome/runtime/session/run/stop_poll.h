// Runs that can be stopped. Steps of a plan run in one parallel region, which nobody can leave early, so a long run is
// cut into several regions, with a poll before each. The run before tells how many steps take how long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "lissome/runtime/session/session.h"

namespace lissome {

class StopPoll {
 public:
  // `steps`: of the plan.
  explicit StopPoll(size_t steps) : steps_(steps) {}

  // Polled from now on; empty: runs are not stopped.
  void set(std::function<bool()> should_stop) { should_stop_ = std::move(should_stop); }
  bool is_set() const { return static_cast<bool>(should_stop_); }
  // Throws RunInterrupted if the run shall stop.
  void poll() const {
    if (should_stop_ && should_stop_()) throw RunInterrupted();
  }
  // The most steps that run between two polls; all of them in a run that is shorter than the time between polls.
  size_t count_steps_between() const;
  // To be called after a whole run that polled.
  void note_run(int64_t nanoseconds) { run_nanoseconds_ = nanoseconds; }

 private:
  size_t steps_;
  std::function<bool()> should_stop_;
  int64_t run_nanoseconds_ = 0;  // of the last whole run that polled; 0: not known
};

}  // namespace lissome

// Runs that can be stopped: steps of a plan run in one parallel region, which nobody can leave early, so that long runs
// are cut into several. How many steps take how long is known from the run before.
#include <limits>

#include "lissome/runtime/session/runner.h"

namespace lissome {
namespace {

constexpr int64_t kNanosecondsBetweenPolls = 50'000'000;
constexpr size_t kStepsAtFirst = 16;  // between polls, of a run whose length is not known

}  // namespace

void Session::Runner::stop_runs(std::function<bool()> should_stop) {
  const std::lock_guard<std::mutex> lock(mutex_);
  should_stop_ = std::move(should_stop);
}

void Session::Runner::poll_stop() const {
  if (should_stop_ && should_stop_()) throw RunInterrupted();
}

// Of a run that is shorter than the time between polls: all of them.
size_t Session::Runner::count_steps_between_polls() const {
  if (!should_stop_) return std::numeric_limits<size_t>::max() / 2;
  if (run_nanoseconds_ == 0) return kStepsAtFirst;
  const double share = static_cast<double>(kNanosecondsBetweenPolls) / static_cast<double>(run_nanoseconds_);
  return static_cast<size_t>(share * static_cast<double>(plan_->steps.size())) + 1;
}

}  // namespace lissome

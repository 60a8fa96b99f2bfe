// See stop_poll.h.
#include "lissome/runtime/session/run/stop_poll.h"

#include <limits>

namespace lissome {
namespace {

constexpr int64_t kNanosecondsBetweenPolls = 50'000'000;
constexpr size_t kStepsAtFirst = 16;  // between polls, of a run whose length is not known

}  // namespace

size_t StopPoll::count_steps_between() const {
  if (!should_stop_) return std::numeric_limits<size_t>::max() / 2;
  if (run_nanoseconds_ == 0) return kStepsAtFirst;
  const double share = static_cast<double>(kNanosecondsBetweenPolls) / static_cast<double>(run_nanoseconds_);
  return static_cast<size_t>(share * static_cast<double>(steps_)) + 1;
}

}  // namespace lissome

// Whether the helpers of a thread pool are worth waiting for: beside other work they may be off the processor just when
// they hold a part, and then one thread alone is done sooner.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lissome {

class HelperGain {
 public:
  // Whether the next region may have to do without helpers; if so, whether it is to have them. `now`: nanoseconds of a
  // steady clock.
  bool is_paused() const { return alone_until_ != 0; }
  bool is_worth_trying(int64_t now) const { return now >= alone_until_; }

  // Whether the next region's time is worth looking at the clock: of short ones, some are.
  bool wants_time() { return last_ >= kShort || ++untimed_ % kShortOnes == 0; }

  // A region with helpers: how long it took, how long the caller waited for parts of others in it, and which share of
  // the parts it ran itself.
  void note(int64_t now, int64_t took, int64_t waited, double own_share) {
    last_ = took;
    took_ += static_cast<double>(took);
    // The caller's own work, as if it had done all of it.
    alone_ += static_cast<double>(took - waited) / std::max(own_share, kLeastShare);
    if (took_ < kWindow) return;
    const bool gained = alone_ > kLeastGain * took_;
    pause_ = gained ? 0 : std::clamp(2 * pause_, kShortestPause, kLongestPause);
    alone_until_ = gained ? 0 : now + pause_;
    took_ = alone_ = 0;
  }

 private:
  static constexpr double kLeastShare = 0.01;
  // Below that, one thread alone is about as fast, and leaves a processor to others.
  static constexpr double kLeastGain = 1.05;
  static constexpr double kWindow = 10e6;                                             // nanoseconds
  static constexpr int64_t kShortestPause = 10'000'000, kLongestPause = 640'000'000;  // nanoseconds

  static constexpr int64_t kShort = 20'000;  // nanoseconds
  static constexpr unsigned kShortOnes = 16;

  unsigned untimed_ = 0;
  int64_t last_ = kShort;
  double took_ = 0, alone_ = 0;  // nanoseconds since the last decision
  int64_t pause_ = 0, alone_until_ = 0;
};

}  // namespace lissome

// The limit that annealing aims at so that the plans of its schedules fit.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lissome {

// The most bytes that annealed schedules may have at once by the count of the judge, so that their plans take no more
// than `wanted`. A plan takes a little more than the judge counts, and more still where buffers leave gaps.
class AnnealingLimit {
 public:
  explicit AnnealingLimit(int64_t wanted) : wanted_(wanted) {}

  // Records that the plan of a schedule with this peak takes `planned` bytes.
  void note(int64_t peak, int64_t planned) {
    unseen_ = std::min(unseen_, planned - peak);
    if (planned <= wanted_) {
      fitting_ = std::max(fitting_, peak);
    } else {
      too_much_ = std::min(too_much_, peak);
    }
  }

  // The limit for plans without gaps.
  int64_t most() const { return wanted_ - unseen_; }
  // Below the peaks whose plans left too large gaps, but not below the largest peak that fitted.
  int64_t careful() const {
    const auto less = static_cast<int64_t>(kLessRoom * static_cast<double>(too_much_));
    return std::min(most(), std::max(less, fitting_));
  }

 private:
  static constexpr double kLessRoom = 0.98;

  int64_t wanted_;
  int64_t unseen_ = INT64_MAX;
  int64_t fitting_ = 0, too_much_ = INT64_MAX;  // peaks of schedules whose plans do and do not fit
};

}  // namespace lissome

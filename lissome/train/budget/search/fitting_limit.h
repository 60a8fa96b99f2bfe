// The limit that quick searches aim at so that the plans of their schedules fit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lissome {

// The judge of schedules counts memory differently from the plan, so its limit moves between limits whose plans fitted
// and limits whose plans did not. Numbers are bytes by the count of the judge.
class FittingLimit {
 public:
  // `first`: the limit to try first.
  explicit FittingLimit(double first) : limit_(first) {}

  double limit() const { return limit_; }

  // Records what the search found for the limit and moves it. `room`: the bytes wanted over those of the plan; `peak`:
  // the peak of the schedule; `reached`: the peak is within the limit. Returns whether another limit may do better.
  bool move(double room, int64_t peak, bool reached) {
    const bool fitted = room >= 1;
    if (fitted) fits_ = limit_;
    // Any limit down to the peak that the search reached would give the same schedule.
    if (!fitted && reached) too_much_ = limit_ = std::min(limit_, static_cast<double>(peak));
    if (fitted && room < kCloseEnough) return false;
    if (!fitted && !reached && room < kOutOfReach) return false;
    // If the search found nothing so small, it may with a slightly larger limit, whose plan may be smaller than
    // counted.
    const double factor = !fitted && !reached ? kCloseEnough : std::clamp(room, kLeastMove, 1 / kLeastMove);
    const double moved = limit_ * factor;
    limit_ = moved > fits_ && moved < too_much_ ? moved : (fits_ + std::min(too_much_, 2 * limit_)) / 2;
    return true;
  }

 private:
  static constexpr double kLeastMove = 0.8;     // smallest factor by which a limit moves at once
  static constexpr double kCloseEnough = 1.02;  // room that is not worth another search, and the move where none is
  static constexpr double kOutOfReach = 0.9;    // of the bytes reached: another limit does not help below that

  double limit_;
  double fits_ = 0, too_much_ = INFINITY;
};

}  // namespace lissome

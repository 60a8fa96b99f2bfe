// Reads the memory of the process, at most four times a second: a read costs as much as a small step.
#pragma once

#include "lissome/measure.h"

namespace lissome {

class ResidentReader {
 public:
  // Resident set of the process in bytes, at most a quarter of a second old.
  double read() {
    if (bytes_ == 0 || watch_.seconds() - read_at_ > kSecondsBetweenReads) {
      bytes_ = static_cast<double>(read_resident_memory().now);
      read_at_ = watch_.seconds();
    }
    return bytes_;
  }

 private:
  static constexpr double kSecondsBetweenReads = 0.25;

  Stopwatch watch_;
  double bytes_ = 0, read_at_ = 0;
};

}  // namespace lissome

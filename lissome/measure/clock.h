// Elapsed time on the monotonic clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace lissome {

inline int64_t now_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(now_nanoseconds() - start_) * 1e-9; }

 private:
  int64_t start_ = now_nanoseconds();
};

}  // namespace lissome

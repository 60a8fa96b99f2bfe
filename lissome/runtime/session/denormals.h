// Flushes denormals in the current thread while it stands: inputs and results below the smallest normal number count as
// zero, for every step that lissome computes itself. Steps that run in libtorch keep the caller's mode.
#pragma once

#include <immintrin.h>

namespace lissome {

class FlushDenormals {
 public:
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero); }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;
  unsigned before_;
};

}  // namespace lissome

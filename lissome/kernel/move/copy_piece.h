// A copy of one run of bytes, of any length. Static: see split.h.
#pragma once

#include <cstdint>
#include <cstring>

namespace lissome {
namespace {

// A run of a few lines costs less in place than a call of memcpy.
inline void copy_piece(char* y, const char* x, int64_t bytes) {
  constexpr int64_t kStep = 32, kFew = 128;
  if (bytes > kFew) {
    std::memcpy(y, x, static_cast<size_t>(bytes));
    return;
  }
  int64_t at = 0;
  for (; at + kStep <= bytes; at += kStep) std::memcpy(y + at, x + at, kStep);
  if (at < bytes) std::memcpy(y + at, x + at, static_cast<size_t>(bytes - at));
}

}  // namespace
}  // namespace lissome

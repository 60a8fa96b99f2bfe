// How the parts of a call share its work. Everything here is static: kernel files are compiled for different
// instruction sets, and a shared inline function could end up in the wrong one.
#pragma once

#include <cstdint>

namespace lissome {

struct Range {
  int64_t begin, end;
};

static inline Range split_evenly(int64_t count, int part, int parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// A share of `count`, cut at multiples of `unit`.
[[maybe_unused]] static inline Range split_by_unit(int64_t count, int64_t unit, int part, int parts) {
  const Range units = split_evenly((count + unit - 1) / unit, part, parts);
  const int64_t end = units.end * unit;
  return {units.begin * unit, end < count ? end : count};
}

}  // namespace lissome

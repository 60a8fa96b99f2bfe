// How the bf16 linear cuts its rows, and how much of x it stages. Static: see split.h.
#pragma once

#include <cstdint>

#include "lissome/kernel/gemm/linear_bf16.h"

namespace lissome {
namespace {

inline int64_t count_bf16_steps(int64_t inputs) { return (inputs + kBf16Step - 1) / kBf16Step; }

// Rows that are taken at once, so that they stay in cache from panel to panel: a multiple of 96, which both tiles
// of 32 rows and tiles of 12 divide.
inline int64_t choose_bf16_chunk(int64_t inputs) {
  constexpr int64_t kUnit = 96, kBytes = 512 * 1024;
  const int64_t rows = kBytes / (count_bf16_steps(inputs) * kBf16Step * 4 + 1) / kUnit * kUnit;
  return rows < kUnit ? kUnit : rows;
}

// Where weight[n][k] lies among the packed ones.
inline int64_t find_packed_bf16(int64_t n, int64_t k, int64_t steps) {
  return ((n / 32 * steps + k / 32) * 2 + n / 16 % 2) * 512 + k / 2 % 16 * 32 + n % 16 * 2 + k % 2;
}

}  // namespace
}  // namespace lissome

// Products and reads at the rate of the registers. 12 sums hide the latency of a product on every processor of the
// table.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/peak/peak.h"

namespace lissome {
namespace {

constexpr int kPeakSums = 12;

LISSOME_INLINE void run_peak_multiply_f32(const PeakCall& call, int part, int) {
  const Floats factor = fill(0.999F), addend = fill(1e-3F);
  Floats sums[kPeakSums];
#pragma GCC unroll 12
  for (int i = 0; i < kPeakSums; ++i) sums[i] = fill(static_cast<float>(i + part));
  for (int64_t round = 0; round < call.rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kPeakSums; ++i) sums[i] = multiply_add(sums[i], factor, addend);
  }
  Floats all = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kPeakSums; ++i) all = all + sums[i];
  call.sinks[part] = sum_lanes(all);
  call.done[part] = call.rounds * kPeakSums * Floats::kWidth;
}

LISSOME_INLINE void run_peak_read(const PeakCall& call, int part, int) {
  constexpr int kSums = 8;
  Floats sums[kSums];
#pragma GCC unroll 8
  for (int i = 0; i < kSums; ++i) sums[i] = zeros();
  const float* first = call.numbers + part * call.count;
  for (int64_t round = 0; round < call.rounds; ++round) {
    for (int64_t at = 0; at < call.count; at += kSums * Floats::kWidth) {
#pragma GCC unroll 8
      for (int i = 0; i < kSums; ++i) sums[i] = sums[i] + load(first + at + i * Floats::kWidth);
    }
  }
  Floats all = sums[0];
#pragma GCC unroll 8
  for (int i = 1; i < kSums; ++i) all = all + sums[i];
  call.sinks[part] = sum_lanes(all);
  call.done[part] = call.rounds * call.count * static_cast<int64_t>(sizeof(float));
}

}  // namespace
}  // namespace lissome

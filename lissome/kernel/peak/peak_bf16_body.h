// Products of bf16 pairs, summed in f32, at the rate of the registers.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/peak/peak.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_peak_multiply_bf16(const PeakCall& call, int part, int) {
  constexpr int kSums = 12;
  const __m512bh factor = _mm512_cvtne2ps_pbh(fill(0.999F).v, fill(1e-3F).v);
  Floats sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = fill(static_cast<float>(i + part));
  for (int64_t round = 0; round < call.rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = {_mm512_dpbf16_ps(sums[i].v, factor, factor)};
  }
  Floats all = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kSums; ++i) all = all + sums[i];
  call.sinks[part] = sum_lanes(all);
  call.done[part] = call.rounds * kSums * Floats::kWidth * 2;
}

}  // namespace
}  // namespace lissome

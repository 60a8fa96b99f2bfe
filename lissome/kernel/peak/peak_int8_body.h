// Products of u8 with s8, summed in s32, at the rate of the registers.
#pragma once

#include "lissome/kernel/isa/vector_int8.h"

#include "lissome/kernel/peak/peak.h"

namespace lissome {
namespace {

LISSOME_INLINE void run_peak_multiply_u8s8(const PeakCall& call, int part, int) {
  constexpr int kSums = 12;
  alignas(64) int8_t weights[4 * Floats::kWidth];
  for (int i = 0; i < 4 * Floats::kWidth; ++i) weights[i] = static_cast<int8_t>(i - part);
  const Weights factor = load_weights(weights);
  const Inputs input = broadcast_inputs(0x01020304);
  Ints sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = fill_ints(i);
  for (int64_t round = 0; round < call.rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = add_products(sums[i], input, factor);
  }
  Floats all = to_floats(sums[0]);
#pragma GCC unroll 12
  for (int i = 1; i < kSums; ++i) all = all + to_floats(sums[i]);
  call.sinks[part] = sum_lanes(all);
  call.done[part] = call.rounds * kSums * Floats::kWidth * 4;
}

}  // namespace
}  // namespace lissome

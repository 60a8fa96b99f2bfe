// The bf16 linear of a single row with AVX-512 BF16: bound by how fast weights come, so neither tile registers nor
// tiles of rows help. Four sums beside each other for each register of outputs hide the latency of their additions.
#pragma once

#include "lissome/kernel/gemm/linear_bf16_rows_body.h"

namespace lissome {
namespace {

// Results of a panel, before the epilogue.
LISSOME_INLINE void multiply_row(const uint16_t* x, const uint16_t* weight, int64_t steps, float* results) {
  constexpr int64_t kSquare = 16 * kBf16Step, kAhead = 4 * kSquare;
  __m512 sums[2][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) sums[0][i] = sums[1][i] = _mm512_setzero_ps();
  for (int64_t step = 0; step < steps; ++step, x += kBf16Step, weight += 2 * kSquare) {
#pragma GCC unroll 16
    for (int pair = 0; pair < 16; ++pair) {
      int bits;
      __builtin_memcpy(&bits, x + 2 * pair, 4);
      const auto value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
      const uint16_t* at = weight + pair * 32;
      // The prefetcher of the processor stops at each page.
      _mm_prefetch(reinterpret_cast<const char*>(at + kAhead), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(at + kAhead + kSquare), _MM_HINT_T0);
      sums[0][pair % 4] =
          _mm512_dpbf16_ps(sums[0][pair % 4], value, reinterpret_cast<__m512bh>(_mm512_loadu_si512(at)));
      sums[1][pair % 4] =
          _mm512_dpbf16_ps(sums[1][pair % 4], value, reinterpret_cast<__m512bh>(_mm512_loadu_si512(at + kSquare)));
    }
  }
  for (int i = 0; i < 2; ++i) {
    _mm512_storeu_ps(results + 16 * i,
                     _mm512_add_ps(_mm512_add_ps(sums[i][0], sums[i][1]), _mm512_add_ps(sums[i][2], sums[i][3])));
  }
}

[[maybe_unused]] void run_single_row(const LinearBf16Call& call, int part, int parts) {
  const int64_t steps = count_bf16_steps(call.inputs), panels = (call.outputs + kBf16Panel - 1) / kBf16Panel;
  const Range share = split_evenly(panels, part, parts);
  auto* scratch = reinterpret_cast<uint16_t*>(call.scratch + part * linear_bf16_scratch(call.rows, call.inputs));
  const uint16_t* x = stage_rows(call, {0, 1}, kBf16Step, scratch).first;
  choose_activation(call.epilogue, [&](const auto& activation) {
    for (int64_t panel = share.begin; panel < share.end; ++panel) {
      alignas(64) float results[kBf16Panel];
      multiply_row(x, call.weight + panel * steps * kBf16Step * kBf16Panel, steps, results);
      const int64_t output = panel * kBf16Panel, left = call.outputs - output;
      finish_row(call, results, {0, output, 1, left < kBf16Panel ? left : kBf16Panel}, 0, activation);
    }
  });
}

}  // namespace
}  // namespace lissome

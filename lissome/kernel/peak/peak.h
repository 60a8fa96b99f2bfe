// Loops that do nothing but what a processor's limits are counted in: products in registers, bytes read. They measure
// the machine (runtime/session/peaks.h); plans never name them.
#pragma once

#include <cstdint>

#include "lissome/kernel/kernel_table.h"

namespace lissome {

struct PeakCall {
  int64_t rounds = 0;
  const float* numbers = nullptr;  // peak_read: part i reads numbers[i * count, (i + 1) * count), rounds times
  int64_t count = 0;               // per part, a multiple of 128
  float* sinks = nullptr;          // [parts], so that nothing is optimized away
  int64_t* done = nullptr;         // [parts], multiply-adds or bytes that the part did
};

// The functions for this processor, masked features taken away; null where it has no such products.
struct PeakKernels {
  KernelFunction multiply_f32 = nullptr;
  KernelFunction multiply_bf16 = nullptr;
  KernelFunction multiply_u8s8 = nullptr;
  KernelFunction read = nullptr;
};
PeakKernels find_peak_kernels();

}  // namespace lissome

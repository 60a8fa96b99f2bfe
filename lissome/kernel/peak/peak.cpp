#include "lissome/kernel/peak/peak.h"

#include <string_view>

#include "lissome/kernel/kernel_table.h"
#include "lissome/kernel/peak/kernel_versions.h"

namespace lissome {

// What a compiler makes of plain loops: the limit of a processor that none of our kernels is written for.
void peak_multiply_f32_portable(const PeakCall& call, int part, int) {
  constexpr int kSums = 16;
  float sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(i + part);
  for (int64_t round = 0; round < call.rounds; ++round) {
    for (float& sum : sums) sum = sum * 0.999F + 1e-3F;
  }
  float all = 0;
  for (float sum : sums) all += sum;
  call.sinks[part] = all;
  call.done[part] = call.rounds * kSums;
}

void peak_read_portable(const PeakCall& call, int part, int) {
  const float* first = call.numbers + part * call.count;
  float sums[16] = {};
  for (int64_t round = 0; round < call.rounds; ++round) {
    for (int64_t at = 0; at < call.count; at += 16) {
      for (int i = 0; i < 16; ++i) sums[i] += first[at + i];
    }
  }
  float all = 0;
  for (float sum : sums) all += sum;
  call.sinks[part] = all;
  call.done[part] = call.rounds * call.count * static_cast<int64_t>(sizeof(float));
}

namespace {

// Null where this processor runs no version.
KernelFunction find_fastest(std::string_view name) {
  for (const KernelRow& row : kernel_rows(name)) {
    if (can_run(row.isa)) return row.function;
  }
  return nullptr;
}

}  // namespace

PeakKernels find_peak_kernels() {
  return {find_fastest("peak_multiply_f32"), find_fastest("peak_multiply_bf16"), find_fastest("peak_multiply_u8s8"),
          find_fastest("peak_read")};
}

}  // namespace lissome

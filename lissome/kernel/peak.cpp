#include "lissome/kernel/peak.h"

#include "lissome/kernel/kernel_table_rows.h"

namespace lissome {

namespace {

template <void (*Function)(const PeakCall&, int, int)>
void run_erased(const void* call, int part, int parts) {
  Function(*static_cast<const PeakCall*>(call), part, parts);
}

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

}  // namespace

PeakKernels find_peak_kernels() {
  PeakKernels kernels{run_erased<peak_multiply_f32_portable>, nullptr, nullptr, run_erased<peak_read_portable>};
  if (can_run(Isa::avx2)) {
    kernels = {run_erased<peak_multiply_f32_avx2>, nullptr, run_erased<peak_multiply_u8s8_avx2>,
               run_erased<peak_read_avx2>};
  }
  if (can_run(Isa::avx512)) {
    kernels.multiply_f32 = run_erased<peak_multiply_f32_avx512>;
    kernels.read = run_erased<peak_read_avx512>;
  }
  if (can_run(Isa::avx512_vnni)) kernels.multiply_u8s8 = run_erased<peak_multiply_u8s8_avx512_vnni>;
  if (can_run(Isa::avx512_bf16)) kernels.multiply_bf16 = run_erased<peak_multiply_bf16_avx512_bf16>;
  if (can_run(Isa::amx)) {
    kernels.multiply_bf16 = run_erased<peak_multiply_bf16_amx>;
    kernels.multiply_u8s8 = run_erased<peak_multiply_u8s8_amx>;
  }
  return kernels;
}

}  // namespace lissome

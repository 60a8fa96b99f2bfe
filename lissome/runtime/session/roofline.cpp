// See roofline.h.
#include "lissome/runtime/session/roofline.h"

#include <algorithm>

namespace lissome {

StepLimit find_step_limit(std::string_view kernel, int64_t bytes, double products, Dtype multiplied,
                          const MachinePeaks& peaks, double read_rate) {
  if (kernel == kReferenceStep || kernel == "session") return {};
  // Without bf16 products, bf16 is widened and multiplied as f32.
  const double products_rate = multiplied == Dtype::u8     ? peaks.multiply_u8s8
                               : multiplied == Dtype::bf16 ? std::max(peaks.multiply_bf16, peaks.multiply_f32)
                                                           : peaks.multiply_f32;
  const double compute = products_rate > 0 ? products / products_rate : 0;
  const double memory = read_rate > 0 ? static_cast<double>(bytes) / read_rate : 0;
  const double least = std::max(compute, memory);
  if (least <= 0) return {};
  if (least < peaks.barrier) return {least, "overhead"};
  return {least, compute >= memory ? "compute" : "memory"};
}

double choose_read_rate(const MachinePeaks& peaks, int64_t working_set, const CacheSizes& caches) {
  if (peaks.read_l2 > 0 && working_set <= caches.l2 * peaks.threads) return peaks.read_l2;
  if (peaks.read_l3 > 0 && working_set <= caches.l3) return peaks.read_l3;
  return peaks.read_memory;
}

}  // namespace lissome

// The portable form, in double.
#include "lissome/kernel/norm/group_norm.h"

#include <cmath>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"
#include "lissome/kernel/norm/kernel_versions.h"

namespace lissome {

namespace {

template <typename T>
void normalize_groups(const GroupNormCallOf<T>& call, int part, int parts) {
  const Range mine = split_evenly(call.batch * call.groups, part, parts);
  const int64_t channels = call.channels / call.groups;
  const auto count = static_cast<double>(channels * call.positions);
  for (int64_t at = mine.begin; at < mine.end; ++at) {
    const int64_t channel = at % call.groups * channels,
                  start = at / call.groups * call.positions * call.channels + channel;
    double mean = 0, variance = 0;
    for (int64_t p = 0; p < call.positions; ++p) {
      for (int64_t c = 0; c < channels; ++c) mean += widen_portable(call.x[start + p * call.channels + c]) / count;
    }
    for (int64_t p = 0; p < call.positions; ++p) {
      for (int64_t c = 0; c < channels; ++c) {
        const double distance = widen_portable(call.x[start + p * call.channels + c]) - mean;
        variance += distance * distance / count;
      }
    }
    const double factor = 1 / std::sqrt(variance + static_cast<double>(call.epsilon));
    for (int64_t p = 0; p < call.positions; ++p) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t place = start + p * call.channels + c;
        double v = (widen_portable(call.x[place]) - mean) * factor;
        if (call.weight) v *= widen_portable(call.weight[channel + c]);
        if (call.bias) v += widen_portable(call.bias[channel + c]);
        narrow_portable(activate(call.epilogue, v), call.y[place]);
      }
    }
  }
}

}  // namespace

void group_norm_portable(const GroupNormCall& call, int part, int parts) { normalize_groups(call, part, parts); }
void group_norm_bf16_portable(const GroupNormBf16Call& call, int part, int parts) {
  normalize_groups(call, part, parts);
}

}  // namespace lissome

// Group norm over Floats: channels across registers, so that groups of few channels fill them too.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/elementwise/activation_body.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/norm/group_norm.h"

namespace lissome {
namespace {

// Sums of so many positions stay f32; those sums are added up in double.
constexpr int64_t kPositionBlock = 256;

template <typename T>
struct GroupChannels {
  const T* x;  // position 0
  int64_t positions, stride, channels;
};

// totals[c] = the sum of f(x[p][c], c, lanes) over all positions p.
template <typename T, typename Function>
LISSOME_INLINE void sum_channels(const GroupChannels<T>& of, double* totals, const Function& f) {
  alignas(64) float sums[kMostGroupChannels];
  for (int64_t c = 0; c < of.channels; ++c) totals[c] = 0;
  for (int64_t first = 0; first < of.positions; first += kPositionBlock) {
    const int64_t end = first + kPositionBlock < of.positions ? first + kPositionBlock : of.positions;
    for (int64_t c = 0; c < of.channels; c += Floats::kWidth) {
      const int64_t left = of.channels - c < Floats::kWidth ? of.channels - c : Floats::kWidth;
      Floats sum = zeros();
      for (int64_t p = first; p < end; ++p) sum = sum + f(load_first(of.x + p * of.stride + c, left), c);
      store(sums + c, sum);
    }
    for (int64_t c = 0; c < of.channels; ++c) totals[c] += static_cast<double>(sums[c]);
  }
}

LISSOME_INLINE double sum_doubles(const double* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

template <typename T>
LISSOME_INLINE void normalize_group(const GroupNormCallOf<T>& call, int64_t image, int64_t group) {
  const int64_t channels = call.channels / call.groups, channel = group * channels;
  const int64_t start = image * call.positions * call.channels + channel;
  const GroupChannels<T> of = {call.x + start, call.positions, call.channels, channels};
  double totals[kMostGroupChannels];
  sum_channels(of, totals, [](Floats v, int64_t) { return v; });
  const double count = static_cast<double>(channels * call.positions);
  const float mean = static_cast<float>(sum_doubles(totals, channels) / count);
  sum_channels(of, totals, [&](Floats v, int64_t) {
    const Floats distance = v - fill(mean);
    return distance * distance;
  });
  const float variance = static_cast<float>(sum_doubles(totals, channels) / count);
  const Floats factor = fill(1 / __builtin_sqrtf(variance + call.epsilon));
  for (int64_t p = 0; p < call.positions; ++p) {
    const T* x = of.x + p * of.stride;
    T* y = call.y + start + p * of.stride;
    for (int64_t c = 0; c < channels; c += Floats::kWidth) {
      const int64_t left = channels - c < Floats::kWidth ? channels - c : Floats::kWidth;
      Floats v = (load_first(x + c, left) - fill(mean)) * factor;
      if (call.weight) v = v * load_first(call.weight + channel + c, left);
      if (call.bias) v = v + load_first(call.bias + channel + c, left);
      if (call.epilogue.activation != Activation::none) v = activate_vector(call.epilogue, v);
      store_first(y + c, v, left);
    }
  }
}

// Groups of one channel each: so many of them at once as a register has lanes, from `channel` on.
template <typename T>
LISSOME_INLINE void normalize_lanes(const GroupNormCallOf<T>& call, int64_t image, int64_t channel) {
  const int64_t left = call.channels - channel, lanes = left < Floats::kWidth ? left : Floats::kWidth;
  const int64_t start = image * call.positions * call.channels + channel;
  const GroupChannels<T> of = {call.x + start, call.positions, call.channels, lanes};
  double totals[Floats::kWidth];
  alignas(64) float means[Floats::kWidth] = {}, factors[Floats::kWidth] = {};
  sum_channels(of, totals, [](Floats v, int64_t) { return v; });
  const auto count = static_cast<double>(call.positions);
  for (int64_t c = 0; c < lanes; ++c) means[c] = static_cast<float>(totals[c] / count);
  const Floats mean = load(means);
  sum_channels(of, totals, [mean](Floats v, int64_t) { return (v - mean) * (v - mean); });
  for (int64_t c = 0; c < lanes; ++c)
    factors[c] = 1 / __builtin_sqrtf(static_cast<float>(totals[c] / count) + call.epsilon);
  const Floats factor = load(factors);
  const Floats weight = call.weight ? load_first(call.weight + channel, lanes) : fill(1.0f);
  const Floats bias = call.bias ? load_first(call.bias + channel, lanes) : zeros();
  for (int64_t p = 0; p < call.positions; ++p) {
    Floats v = (load_first(of.x + p * of.stride, lanes) - mean) * factor * weight + bias;
    if (call.epilogue.activation != Activation::none) v = activate_vector(call.epilogue, v);
    store_first(call.y + start + p * of.stride, v, lanes);
  }
}

template <typename T>
LISSOME_INLINE void normalize_groups(const GroupNormCallOf<T>& call, int part, int parts) {
  if (call.groups == call.channels) {
    const int64_t blocks = (call.channels + Floats::kWidth - 1) / Floats::kWidth;
    const Range own = split_evenly(call.batch * blocks, part, parts);
    for (int64_t at = own.begin; at < own.end; ++at) normalize_lanes(call, at / blocks, at % blocks * Floats::kWidth);
    return;
  }
  const Range mine = split_evenly(call.batch * call.groups, part, parts);
  for (int64_t at = mine.begin; at < mine.end; ++at) normalize_group(call, at / call.groups, at % call.groups);
}

LISSOME_INLINE void run_group_norm(const GroupNormCall& call, int part, int parts) {
  normalize_groups(call, part, parts);
}
LISSOME_INLINE void run_group_norm_bf16(const GroupNormBf16Call& call, int part, int parts) {
  normalize_groups(call, part, parts);
}

}  // namespace
}  // namespace lissome

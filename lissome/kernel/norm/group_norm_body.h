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

// Groups of few channels are read together: spans of whole registers where a few groups make one, else of some width.
constexpr int64_t kSpanChannels = 16, kWideSpan = 32, kWidestSpan = 128;

// Consecutive channels of one image, whole groups.
template <typename T>
struct ChannelSpan {
  const T* x;  // position 0
  int64_t positions, stride, channels;
};

LISSOME_INLINE int64_t count_span_groups(int64_t group_channels, int64_t groups) {
  for (int64_t span = 1; span * group_channels <= kWidestSpan && span <= groups; ++span) {
    if (span * group_channels % kSpanChannels == 0) return span;
  }
  const int64_t wide = (kWideSpan + group_channels - 1) / group_channels;
  return wide < groups ? wide : groups;
}

// sums[v] = the sum of f(x[p]) over `positions`, in four sums each, so that additions do not wait. Lanes beyond `lanes`
// of the last register are left out.
template <int Vectors, typename T, typename Function>
LISSOME_INLINE void sum_positions(const T* x, int64_t positions, int64_t stride, int64_t lanes, float* sums,
                                  const Function& f) {
  constexpr int kTogether = 4;
  Floats partial[kTogether][Vectors];
  for (auto& row : partial) {
    for (Floats& sum : row) sum = zeros();
  }
  const auto add = [&](int64_t p, Floats(&row)[Vectors]) {
    for (int v = 0; v < Vectors; ++v) {
      const T* from = x + p * stride + v * Floats::kWidth;
      row[v] = row[v] + f(Vectors > 1 ? load(from) : load_first(from, lanes), v);
    }
  };
  int64_t p = 0;
  for (; p + kTogether <= positions; p += kTogether) {
    for (int i = 0; i < kTogether; ++i) add(p + i, partial[i]);
  }
  for (; p < positions; ++p) add(p, partial[0]);
  for (int v = 0; v < Vectors; ++v)
    store(sums + v * Floats::kWidth, (partial[0][v] + partial[1][v]) + (partial[2][v] + partial[3][v]));
}

// totals[c] = the sum of (x[p][c] - shift[c])^Power over all positions p.
template <int Power, typename T>
LISSOME_INLINE void sum_channels(const ChannelSpan<T>& of, const float* shift, double* totals) {
  constexpr int kPair = 2;
  alignas(64) float sums[kPair * Floats::kWidth];
  for (int64_t c = 0; c < of.channels;) {
    const int64_t left = of.channels - c;
    const bool pair = left >= kPair * Floats::kWidth;
    const int64_t lanes = pair ? kPair * Floats::kWidth : left < Floats::kWidth ? left : Floats::kWidth;
    Floats from[kPair] = {zeros(), zeros()};
    if (Power > 1) from[0] = load(shift + c), from[1] = pair ? load(shift + c + Floats::kWidth) : zeros();
    const auto f = [&](Floats v, int i) { return Power > 1 ? (v - from[i]) * (v - from[i]) : v; };
    for (int64_t i = 0; i < lanes; ++i) totals[c + i] = 0;
    for (int64_t first = 0; first < of.positions; first += kPositionBlock) {
      const int64_t rest = of.positions - first, count = rest < kPositionBlock ? rest : kPositionBlock;
      const T* x = of.x + first * of.stride + c;
      pair ? sum_positions<kPair>(x, count, of.stride, lanes, sums, f)
           : sum_positions<1>(x, count, of.stride, lanes, sums, f);
      for (int64_t i = 0; i < lanes; ++i) totals[c + i] += static_cast<double>(sums[i]);
    }
    c += lanes;
  }
}

// values[c] = finish(the mean of its group's totals) for the channels of each group.
template <typename Function>
LISSOME_INLINE void spread_means(const double* totals, int64_t channels, int64_t group_channels, double count,
                                 float* values, const Function& finish) {
  for (int64_t c = 0; c < channels; c += group_channels) {
    double sum = 0;
    for (int64_t i = 0; i < group_channels; ++i) sum += totals[c + i];
    const float value = finish(static_cast<float>(sum / count));
    for (int64_t i = 0; i < group_channels; ++i) values[c + i] = value;
  }
}

// The span of `groups` groups from `group` of an image.
template <typename T, typename Activate>
LISSOME_INLINE void normalize_span(const GroupNormCallOf<T>& call, int64_t image, int64_t group, int64_t groups,
                                   const Activate& activate) {
  const int64_t group_channels = call.channels / call.groups, channel = group * group_channels;
  const int64_t start = image * call.positions * call.channels + channel;
  const ChannelSpan<T> of = {call.x + start, call.positions, call.channels, groups * group_channels};
  constexpr int64_t kRoom = (kMostGroupChannels > kWidestSpan ? kMostGroupChannels : kWidestSpan) + Floats::kWidth;
  double totals[kRoom];
  alignas(64) float means[kRoom], factors[kRoom];
  const auto count = static_cast<double>(group_channels * call.positions);
  sum_channels<1>(of, nullptr, totals);
  spread_means(totals, of.channels, group_channels, count, means, [](float mean) { return mean; });
  sum_channels<2>(of, means, totals);
  spread_means(totals, of.channels, group_channels, count, factors,
               [&](float variance) { return 1 / __builtin_sqrtf(variance + call.epsilon); });
  for (int64_t c = 0; c < of.channels; c += Floats::kWidth) {
    const int64_t left = of.channels - c, lanes = left < Floats::kWidth ? left : Floats::kWidth;
    const Floats mean = load(means + c), bias = call.bias ? load_first(call.bias + channel + c, lanes) : zeros();
    Floats factor = load(factors + c);
    if (call.weight) factor = factor * load_first(call.weight + channel + c, lanes);
    const T* x = of.x + c;
    T* y = call.y + start + c;
    const auto finish = [&](Floats v) { return activate(multiply_add(v - mean, factor, bias)); };
    if (lanes == Floats::kWidth) {
      for (int64_t p = 0; p < of.positions; ++p) store(y + p * of.stride, finish(load(x + p * of.stride)));
    } else {
      for (int64_t p = 0; p < of.positions; ++p)
        store_first(y + p * of.stride, finish(load_first(x + p * of.stride, lanes)), lanes);
    }
  }
}

template <typename T>
LISSOME_INLINE void normalize_groups(const GroupNormCallOf<T>& call, int part, int parts) {
  int64_t together = count_span_groups(call.channels / call.groups, call.groups);
  if (call.batch * ((call.groups + together - 1) / together) < parts) together = 1;
  const int64_t spans = (call.groups + together - 1) / together;
  const Range mine = split_evenly(call.batch * spans, part, parts);
  choose_activation(call.epilogue, [&](const auto& activate) {
    for (int64_t at = mine.begin; at < mine.end; ++at) {
      const int64_t group = at % spans * together, left = call.groups - group;
      normalize_span(call, at / spans, group, left < together ? left : together, activate);
    }
  });
}

LISSOME_INLINE void run_group_norm(const GroupNormCall& call, int part, int parts) {
  normalize_groups(call, part, parts);
}
LISSOME_INLINE void run_group_norm_bf16(const GroupNormBf16Call& call, int part, int parts) {
  normalize_groups(call, part, parts);
}

}  // namespace
}  // namespace lissome

// What is done once a channel, and the portable forms.
#include "lissome/kernel/norm/batch_norm.h"

#include <cmath>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"
#include "lissome/kernel/norm/kernel_versions.h"
#include "lissome/kernel/pool/max_pool_portable.h"

namespace lissome {
namespace {

double total_of(const double* sums, int64_t channels, int which, int64_t c) {
  double total = 0;
  for (int64_t block = 0; block < kChannelBlocks; ++block) total += sums[(block * 2 + which) * channels + c];
  return total;
}

// The mask of an affine map is rounded as that map rounds.
template <typename Call, typename T>
double pass_where_positive(const Call& call, int64_t at, T value) {
  if (!call.mask) return widen_portable(value);
  const int64_t c = at % call.channels;
  T mask = call.mask[at];
  if (call.mask_scale)
    narrow_portable(static_cast<double>(call.mask_scale[c]) * widen_portable(mask) + call.mask_shift[c], mask);
  return widen_portable(mask) <= 0 ? 0.0 : widen_portable(value);
}

// Of rows as they lie, or as the gradient of max pooling makes them.
template <typename Call, typename T>
T read_row(const Call& call, const T* rows, int64_t at) {
  if (!call.indices) return rows[at];
  const MaxPoolGradientCallOf<T> pooled = {rows, call.indices, nullptr, call.channels, call.window};
  T value;
  narrow_portable(sum_gradient(pooled, at / call.channels, at % call.channels), value);
  return value;
}

template <typename T>
void find_statistics(const BatchNormStatisticsCallOf<T>& call, int part, int parts) {
  const Range channels = split_evenly(call.channels, part, parts);
  const auto rows = static_cast<double>(call.rows);
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    const double offset = total_of(call.sums, call.channels, 0, c) / rows;
    const double squares = total_of(call.sums, call.channels, 1, c) - rows * offset * offset;
    const double variance = (squares > 0 || std::isnan(squares) ? squares : 0) / rows,
                 mean = widen_portable(call.x[c]) + offset;
    const double reciprocal = 1 / std::sqrt(variance + call.epsilon), weight = call.weight ? call.weight[c] : 1.0;
    call.mean[c] = static_cast<float>(mean);
    call.reciprocal_deviation[c] = static_cast<float>(reciprocal);
    call.scale[c] = static_cast<float>(weight * reciprocal);
    call.shift[c] = static_cast<float>((call.bias ? call.bias[c] : 0.0) - weight * reciprocal * mean);
    const double unbiased = variance * rows / (rows - 1);
    call.new_mean[c] = static_cast<float>(call.momentum * mean + (1 - call.momentum) * call.running_mean[c]);
    call.new_var[c] = static_cast<float>(call.momentum * unbiased + (1 - call.momentum) * call.running_var[c]);
  }
}

}  // namespace

void batch_norm_statistics_portable(const BatchNormStatisticsCall& call, int part, int parts) {
  find_statistics(call, part, parts);
}
void batch_norm_statistics_bf16_portable(const BatchNormStatisticsBf16Call& call, int part, int parts) {
  find_statistics(call, part, parts);
}

void batch_norm_gradients_portable(const BatchNormGradientsCall& call, int part, int parts) {
  const Range channels = split_evenly(call.channels, part, parts);
  const auto rows = static_cast<double>(call.rows);
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    const double sum = total_of(call.sums, call.channels, 0, c), products = total_of(call.sums, call.channels, 1, c);
    const double reciprocal = call.reciprocal_deviation[c], weight = call.weight ? call.weight[c] : 1.0;
    call.weight_gradient[c] = static_cast<float>(products * reciprocal);
    call.bias_gradient[c] = static_cast<float>(sum);
    call.dy_scale[c] = static_cast<float>(weight * reciprocal);
    call.x_scale[c] = static_cast<float>(-weight * reciprocal * reciprocal * reciprocal * products / rows);
    call.shift[c] = static_cast<float>(-weight * reciprocal * sum / rows);
  }
}

void channel_totals_portable(const ChannelTotalsCall& call, int part, int parts) {
  const Range channels = split_evenly(call.channels, part, parts);
  for (int64_t c = channels.begin; c < channels.end; ++c)
    call.total[c] = static_cast<float>(total_of(call.sums, call.channels, 0, c));
}

namespace {

template <typename T>
void sum_channels(const ChannelSumsCallOf<T>& call, int part, int parts) {
  const Range blocks = split_evenly(kChannelBlocks, part, parts);
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    const Range rows = split_evenly(call.rows, static_cast<int>(block), static_cast<int>(kChannelBlocks));
    for (int64_t c = 0; c < call.channels; ++c) {
      double first = 0, second = 0;
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        const int64_t at = row * call.channels + c;
        const double center = !call.x ? 0 : call.dy ? call.mean[c] : widen_portable(call.x[c]);
        const double x = call.x ? widen_portable(call.x[at]) - center : 0;
        const double one = call.dy ? pass_where_positive(call, at, read_row(call, call.dy, at)) : x;
        first += one, second += one * x;
      }
      call.sums[block * 2 * call.channels + c] = first;
      call.sums[(block * 2 + 1) * call.channels + c] = second;
    }
  }
}

template <typename T>
void map_channels(const ChannelAffineCallOf<T>& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t at = rows.begin * call.channels; at < rows.end * call.channels; ++at) {
    const int64_t c = at % call.channels;
    const double x = pass_where_positive(call, at, read_row(call, call.x, at));
    double y = static_cast<double>(call.scale[c]) * x + call.shift[c];
    if (call.z) {
      const double centered = widen_portable(call.z[at]) - (call.z_center ? call.z_center[c] : 0.0);
      y += (call.z_scale ? call.z_scale[c] : 1.0) * centered;
    }
    narrow_portable(call.relu && y < 0 ? 0 : y, call.y[at]);
  }
}

}  // namespace

void channel_sums_portable(const ChannelSumsCall& call, int part, int parts) { sum_channels(call, part, parts); }
void channel_sums_bf16_portable(const ChannelSumsBf16Call& call, int part, int parts) {
  sum_channels(call, part, parts);
}
void channel_affine_portable(const ChannelAffineCall& call, int part, int parts) { map_channels(call, part, parts); }
void channel_affine_bf16_portable(const ChannelAffineBf16Call& call, int part, int parts) {
  map_channels(call, part, parts);
}

}  // namespace lissome

#include "lissome/compress/range_histogram.h"

#include <ATen/ops/histc.h>

#include <algorithm>
#include <cmath>

namespace lissome {
namespace {

constexpr double kTail = 1e-4;  // share of values that the percentile method cuts on either side

ActivationRange include_zero(double low, double high) { return {std::min(low, 0.0), std::max(high, 0.0)}; }

ActivationRange choose_percentile(const RangeHistogram& histogram) {
  double total = 0;
  for (double count : histogram.counts) total += count;
  size_t first = 0, last = histogram.counts.size() - 1;
  for (double cut = histogram.counts[first]; cut <= kTail * total && first < last;) cut += histogram.counts[++first];
  for (double cut = histogram.counts[last]; cut <= kTail * total && last > first;) cut += histogram.counts[--last];
  return include_zero(histogram.low + static_cast<double>(first) * histogram.width(),
                      histogram.low + static_cast<double>(last + 1) * histogram.width());
}

// The squared error of quantizing the histogram's values to 256 levels over the range: rounding inside, clipping
// outside.
double find_squared_error(const RangeHistogram& histogram, const ActivationRange& range) {
  const double scale = range.scale();
  double error = 0;
  for (size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    if (histogram.counts[bin] == 0) continue;
    const double value = histogram.center(bin);
    const double distance = value < range.low ? range.low - value : value > range.high ? value - range.high : 0;
    error += histogram.counts[bin] * (distance > 0 ? distance * distance : scale * scale / 12);
  }
  return error;
}

// Both ends shrink independently, coarse to fine: the error is nearly convex in each.
ActivationRange choose_least_error(const RangeHistogram& histogram) {
  ActivationRange best = include_zero(histogram.low, histogram.high);
  const ActivationRange whole = best;
  double least = find_squared_error(histogram, best);
  for (int low_step = 0; low_step < 32; ++low_step) {
    for (int high_step = 0; high_step < 64; ++high_step) {
      const ActivationRange range{whole.low * (1 - low_step / 32.0), whole.high * (1 - high_step / 64.0)};
      if (range.high - range.low <= 0) continue;
      const double error = find_squared_error(histogram, range);
      if (error < least) {
        least = error;
        best = range;
      }
    }
    if (whole.low == 0) break;
  }
  return best;
}

}  // namespace

void RangeHistogram::widen(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  const auto [lowest, highest] = tensor.to(at::kDouble).aminmax();
  const double least = lowest.item().toDouble(), most = highest.item().toDouble();
  if (std::isnan(low)) return;  // as it stays, whatever comes later
  low = seen && !std::isnan(least) ? std::min(low, least) : least;
  high = seen && !std::isnan(most) ? std::max(high, most) : most;
  seen = true;
}

void RangeHistogram::count(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || !is_countable()) return;
  const at::Tensor found = at::histc(tensor.to(at::kFloat).contiguous(), kBins, low, high).to(at::kDouble);
  for (size_t bin = 0; bin < counts.size(); ++bin) counts[bin] += found.const_data_ptr<double>()[bin];
}

bool RangeHistogram::is_countable() const { return high > low && std::isfinite(static_cast<float>(high - low)); }

ActivationRange RangeHistogram::choose_range(RangeMethod method) const {
  if (!is_countable() || method == RangeMethod::minimum_maximum) return include_zero(low, high);
  return method == RangeMethod::percentile ? choose_percentile(*this) : choose_least_error(*this);
}

bool ActivationRange::has_scale() const {
  const float narrow = static_cast<float>(scale());
  return std::isfinite(narrow) && narrow > 0;
}

int64_t ActivationRange::zero_point() const {
  if (high <= low) return 0;
  return std::clamp<int64_t>(std::llround(-low / scale()), 0, 255);
}

}  // namespace lissome

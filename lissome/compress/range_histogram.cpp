#include "lissome/compress/range_histogram.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr double kTail = 1e-4;   // share of values that the percentile method cuts on either side
constexpr double kRare = 1e-3;   // share of values whose magnitude counts as an outlier's
constexpr size_t kLevels = 256;  // of u8

ActivationRange include_zero(double low, double high) {
  return {.low = std::min(low, 0.0), .high = std::max(high, 0.0)};
}

ActivationRange choose_percentile(const RangeHistogram& histogram) {
  const double total = histogram.total();
  size_t first = 0, last = histogram.counts.size() - 1;
  for (double cut = histogram.counts[first]; cut <= kTail * total && first < last;) cut += histogram.counts[++first];
  for (double cut = histogram.counts[last]; cut <= kTail * total && last > first;) cut += histogram.counts[--last];
  return include_zero(histogram.low + static_cast<double>(first) * histogram.width(),
                      histogram.low + static_cast<double>(last + 1) * histogram.width());
}

// Sums over the first bins of a histogram: of counts, of values and of their squares.
class Moments {
 public:
  explicit Moments(const RangeHistogram& histogram) : histogram_(histogram), sums_(histogram.counts.size() + 1) {
    for (size_t bin = 0; bin < histogram.counts.size(); ++bin) {
      const double count = histogram.counts[bin], value = histogram.center(bin);
      sums_[bin + 1] = {sums_[bin].count + count, sums_[bin].value + count * value,
                        sums_[bin].square + count * value * value};
    }
  }

  // The squared error of quantizing the histogram's values to 256 levels over the range: rounding inside, clipping
  // outside.
  double find_squared_error(const ActivationRange& range) const {
    const size_t first = count_bins_below(range.low), last = count_bins_below(std::nextafter(range.high, INFINITY));
    const double inside = sums_[last].count - sums_[first].count;
    return inside * range.scale() * range.scale() / 12 + find_distance(0, first, range.low) +
           find_distance(last, histogram_.counts.size(), range.high);
  }

 private:
  struct Sums {
    double count = 0, value = 0, square = 0;
  };

  // Bins whose center lies below.
  size_t count_bins_below(double value) const {
    const double bins = std::ceil((value - histogram_.low) / histogram_.width() - 0.5);
    return static_cast<size_t>(std::clamp(bins, 0.0, static_cast<double>(histogram_.counts.size())));
  }

  // The sum of squared distances of these bins' values to an end of the range.
  double find_distance(size_t first, size_t last, double end) const {
    const double count = sums_[last].count - sums_[first].count, value = sums_[last].value - sums_[first].value,
                 square = sums_[last].square - sums_[first].square;
    return std::max(square - 2 * end * value + end * end * count, 0.0);
  }

  const RangeHistogram& histogram_;
  std::vector<Sums> sums_;
};

// Both ends shrink independently, coarse to fine: the error is nearly convex in each.
ActivationRange choose_least_error(const RangeHistogram& histogram) {
  ActivationRange best = include_zero(histogram.low, histogram.high);
  const ActivationRange whole = best;
  const Moments moments(histogram);
  double least = moments.find_squared_error(best);
  for (int low_step = 0; low_step < 32; ++low_step) {
    for (int high_step = 0; high_step < 64; ++high_step) {
      const ActivationRange range{.low = whole.low * (1 - low_step / 32.0),
                                  .high = whole.high * (1 - high_step / 64.0)};
      if (range.high - range.low <= 0) continue;
      const double error = moments.find_squared_error(range);
      if (error < least) {
        least = error;
        best = range;
      }
    }
    if (whole.low == 0) break;
  }
  return best;
}

// The divergence of Kullback and Leibler from the histogram, its values outside of the range moved to the ends, to what
// the levels of the range keep of it: each level spreads its count evenly over its bins that are not empty.
double find_divergence(const RangeHistogram& histogram, const ActivationRange& range) {
  constexpr double kNothing = 1e-9;  // of the counts: what a bin has that the levels lose
  const size_t bins = histogram.counts.size();
  const size_t first = histogram.find_bin(range.low), last = histogram.find_bin(range.high);
  std::vector<double> clipped(histogram.counts.begin() + static_cast<std::ptrdiff_t>(first),
                              histogram.counts.begin() + static_cast<std::ptrdiff_t>(last + 1));
  std::array<double, kLevels> counts{}, filled{};
  const auto level = [&](size_t bin) { return bin * kLevels / clipped.size(); };
  for (size_t bin = 0; bin < clipped.size(); ++bin) {
    counts[level(bin)] += clipped[bin];
    filled[level(bin)] += clipped[bin] > 0 ? 1 : 0;
  }
  for (size_t bin = 0; bin < first; ++bin) clipped.front() += histogram.counts[bin];
  for (size_t bin = last + 1; bin < bins; ++bin) clipped.back() += histogram.counts[bin];
  const double total = histogram.total(), kept = std::accumulate(counts.begin(), counts.end(), 0.0);
  double divergence = 0;
  for (size_t bin = 0; bin < clipped.size(); ++bin) {
    if (clipped[bin] == 0) continue;
    const double share = counts[level(bin)] > 0 ? counts[level(bin)] / filled[level(bin)] / kept : 0;
    divergence += clipped[bin] / total * std::log(clipped[bin] / total / std::max(share, kNothing));
  }
  // Bins of a level differ by having been filled at random, too (Miller 1955): without this the narrowest range, whose
  // levels have one bin each, would win wherever there are few values.
  for (const double bins_of_level : filled) divergence -= std::max(bins_of_level - 1, 0.0) / (2 * total);
  return divergence;
}

// Both ends shrink together. Below an eighth of the whole range a level would have no more than one bin.
ActivationRange choose_least_divergence(const RangeHistogram& histogram) {
  constexpr int kSteps = 128;
  const ActivationRange whole = include_zero(histogram.low, histogram.high);
  ActivationRange best = whole;
  double least = find_divergence(histogram, whole);
  for (int step = kSteps - 1; step >= kSteps / 8; --step) {
    const double share = static_cast<double>(step) / kSteps;
    const ActivationRange range{.low = whole.low * share, .high = whole.high * share};
    if (range.high < histogram.low || range.low > histogram.high) break;  // all values lie beyond
    if (const double divergence = find_divergence(histogram, range); divergence < least) {
      least = divergence;
      best = range;
    }
  }
  return best;
}

// Of the counted values, to the precision of a bin.
void describe_values(const RangeHistogram& histogram, ActivationRange& range) {
  const double total = histogram.total();
  std::vector<std::pair<double, double>> magnitudes;  // and how many values have them
  double outside = 0;
  for (size_t bin = 0; bin < histogram.counts.size(); ++bin) {
    const double center = histogram.center(bin), count = histogram.counts[bin];
    if (center < range.low || center > range.high) outside += count;
    if (count > 0) magnitudes.emplace_back(std::abs(center), count);
  }
  if (total == 0) return;
  range.clipped = outside / total;
  std::sort(magnitudes.rbegin(), magnitudes.rend());
  double rare = 0;
  for (const auto& [magnitude, count] : magnitudes) {
    rare += count;
    if (rare <= kRare * total || magnitude == 0) continue;
    range.reach = magnitudes.front().first / magnitude;
    return;
  }
}

}  // namespace

RangeMethod parse_range_method(const std::string& word) {
  if (word == "minmax") return RangeMethod::minimum_maximum;
  if (word == "average") return RangeMethod::average;
  if (word == "percentile") return RangeMethod::percentile;
  if (word == "entropy") return RangeMethod::entropy;
  if (word == "mse") return RangeMethod::mean_squared_error;
  throw_error(ErrorKind::usage, "the observer must be minmax, average, percentile, entropy or mse, not ", quote(word));
}

double RangeHistogram::total() const { return std::accumulate(counts.begin(), counts.end(), 0.0); }

void RangeHistogram::widen(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return;
  const auto [lowest, highest] = tensor.to(at::kDouble).aminmax();
  const double least = lowest.item().toDouble(), most = highest.item().toDouble();
  if (std::isnan(low)) return;  // as it stays, whatever comes later
  low = tensors > 0 && !std::isnan(least) ? std::min(low, least) : least;
  high = tensors > 0 && !std::isnan(most) ? std::max(high, most) : most;
  sum_of_lows += least;
  sum_of_highs += most;
  ++tensors;
}

void RangeHistogram::count(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || !is_countable()) return;
  const at::Tensor values = tensor.to(at::kFloat).contiguous();
  const auto* const data = values.const_data_ptr<float>();
  std::vector<int64_t> found(counts.size());
  const auto last = static_cast<double>(counts.size() - 1);
  const double bins_of_one = 1 / width();
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double value = data[i];
    // Zeros are exact in every range; NaN is no value of it.
    if (value == 0 || !(value >= low && value <= high)) continue;
    ++found[static_cast<size_t>(std::min((value - low) * bins_of_one, last))];
  }
  for (size_t bin = 0; bin < counts.size(); ++bin) counts[bin] += static_cast<double>(found[bin]);
}

size_t RangeHistogram::find_bin(double value) const {
  const double bin = std::floor((value - low) / width());
  return static_cast<size_t>(std::clamp(bin, 0.0, static_cast<double>(counts.size() - 1)));
}

bool RangeHistogram::is_countable() const { return high > low && std::isfinite(static_cast<float>(high - low)); }

ActivationRange RangeHistogram::choose_range(RangeMethod method) const {
  if (!is_countable()) return include_zero(low, high);
  const auto choose = [&] {
    switch (method) {
      case RangeMethod::minimum_maximum: break;
      case RangeMethod::average: return include_zero(sum_of_lows / tensors, sum_of_highs / tensors);
      case RangeMethod::percentile: return choose_percentile(*this);
      case RangeMethod::entropy: return choose_least_divergence(*this);
      case RangeMethod::mean_squared_error: return choose_least_error(*this);
    }
    return include_zero(low, high);
  };
  ActivationRange range = choose();
  describe_values(*this, range);
  return range;
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

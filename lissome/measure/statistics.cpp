// Resampling uses a small counter-based generator of our own, so that the same samples and seed give the same interval
// on every machine and standard library.
#include "lissome/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lissome/base.h"

namespace lissome {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
struct Generator {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  size_t below(size_t bound) { return static_cast<size_t>((static_cast<__uint128_t>(next()) * bound) >> 64); }
};

double find_sorted_percentile(std::span<const double> sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (position - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// Destroys the order of `sample`.
double take_median(std::vector<double>& sample) {
  const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  std::nth_element(sample.begin(), middle, sample.end());
  if (sample.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(sample.begin(), middle)) / 2;
}

// Medians of resampled ratios, sorted.
std::vector<double> bootstrap_medians(std::span<const double> ratios, int resamples, uint64_t seed) {
  Generator generator{seed ^ 0x6c6973736f6d65u};
  std::vector<double> medians(static_cast<size_t>(resamples));
  std::vector<double> sample(ratios.size());
  for (double& median : medians) {
    for (double& value : sample) value = ratios[generator.below(ratios.size())];
    median = take_median(sample);
  }
  std::sort(medians.begin(), medians.end());
  return medians;
}

std::vector<double> divide_pairs(std::span<const double> numerator, std::span<const double> denominator) {
  LISSOME_CHECK(numerator.size() == denominator.size() && !numerator.empty(), "a ratio needs paired samples");
  std::vector<double> ratios(numerator.size());
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = numerator[i] / denominator[i];
  return ratios;
}

// Enough resamples that some twenty of them lie beyond each end of the interval.
int count_resamples(double confidence) {
  return static_cast<int>(std::clamp(40.0 / (1 - confidence), 2000.0, 40000.0));
}

}  // namespace

double find_percentile(std::span<const double> sample, double fraction) {
  LISSOME_CHECK(!sample.empty(), "no sample");
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  return find_sorted_percentile(sorted, fraction);
}

Summary summarize(std::span<const double> sample) {
  Summary summary;
  if (sample.empty()) return summary;
  std::vector<double> sorted(sample.begin(), sample.end());
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  summary.count = static_cast<int>(sorted.size());
  summary.median = find_sorted_percentile(sorted, 0.5);
  summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (double value : sorted) squares += (value - summary.mean) * (value - summary.mean);
  summary.deviation = sorted.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  summary.minimum = sorted.front();
  summary.maximum = sorted.back();
  summary.percentile_5 = find_sorted_percentile(sorted, 0.05);
  summary.percentile_10 = find_sorted_percentile(sorted, 0.10);
  summary.percentile_95 = find_sorted_percentile(sorted, 0.95);
  return summary;
}

Ratio estimate_ratio(std::span<const double> numerator, std::span<const double> denominator, double confidence,
                     uint64_t seed) {
  const std::vector<double> ratios = divide_pairs(numerator, denominator);
  const int resamples = count_resamples(confidence);
  const std::vector<double> medians = bootstrap_medians(ratios, resamples, seed);
  Ratio ratio;
  ratio.median = find_percentile(ratios, 0.5);
  ratio.confidence = confidence;
  ratio.interval = {find_sorted_percentile(medians, (1 - confidence) / 2),
                    find_sorted_percentile(medians, (1 + confidence) / 2)};
  const auto below = std::count_if(medians.begin(), medians.end(), [](double m) { return m <= 1; });
  const auto above = std::count_if(medians.begin(), medians.end(), [](double m) { return m >= 1; });
  const double tail = static_cast<double>(std::min(below, above)) / resamples;
  ratio.p_value = std::clamp(2 * tail, 1.0 / resamples, 1.0);
  return ratio;
}

std::vector<Ratio> estimate_simultaneous_ratios(std::span<const RatioSample> claims, double confidence, uint64_t seed) {
  const size_t count = claims.size();
  std::vector<Ratio> ratios(count);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  const double strictest = 1 - (1 - confidence) / static_cast<double>(std::max<size_t>(count, 1));
  for (size_t i = 0; i < count; ++i) {
    ratios[i] = estimate_ratio(claims[i].numerator, claims[i].denominator, strictest, seed + i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ratios[a].p_value < ratios[b].p_value; });
  for (size_t k = 0; k < count; ++k) {
    const size_t i = order[k];
    const double level = 1 - (1 - confidence) / static_cast<double>(count - k);
    const double p_value = ratios[i].p_value;
    ratios[i] = estimate_ratio(claims[i].numerator, claims[i].denominator, level, seed + i);
    ratios[i].p_value = p_value;
    // Step-down: once one claim is not decided, no later one is.
    const bool undecided = ratios[i].interval.low <= 1 && ratios[i].interval.high >= 1;
    if (!undecided) continue;
    for (size_t later = k + 1; later < count; ++later) {
      const size_t j = order[later];
      ratios[j] = estimate_ratio(claims[j].numerator, claims[j].denominator, level, seed + j);
      ratios[j].interval.low = std::min(ratios[j].interval.low, 1.0);
      ratios[j].interval.high = std::max(ratios[j].interval.high, 1.0);
    }
    break;
  }
  return ratios;
}

}  // namespace lissome

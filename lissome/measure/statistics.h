// Statistics of timings: summaries, bootstrap intervals of ratios, and intervals that hold for many claims at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lissome {

// Of one sample, in the sample's unit. Percentiles interpolate linearly between order statistics.
struct Summary {
  int count = 0;
  double median = 0, mean = 0, deviation = 0;  // deviation: of the sample, n - 1
  double minimum = 0, maximum = 0;
  double percentile_5 = 0, percentile_10 = 0, percentile_95 = 0;
};
Summary summarize(std::span<const double> sample);
double find_percentile(std::span<const double> sample, double fraction);

struct Interval {
  double low = 0, high = 0;
};

// The median of the paired ratios numerator[i] / denominator[i] with a percentile bootstrap interval (Efron and
// Tibshirani 1993, ch. 13). Pairs are rounds of an interleaved run, so slow drift of the machine cancels.
struct Ratio {
  double median = 1;
  Interval interval;  // at `confidence`
  double confidence = 0.95;
  double p_value = 1;  // two-sided, of "the median ratio is 1"; at least 1 / resamples
  bool below_one() const { return interval.high < 1; }
  bool above_one() const { return interval.low > 1; }
};
Ratio estimate_ratio(std::span<const double> numerator, std::span<const double> denominator, double confidence = 0.95,
                     uint64_t seed = 0);

// One claim: the samples behind a ratio.
struct RatioSample {
  std::vector<double> numerator, denominator;
};
// Holm's step-down procedure (Holm 1979) over all claims: the claim with the k-th smallest p-value gets an interval at
// confidence 1 - (1 - confidence) / (m - k + 1), so that with probability `confidence` all decisions hold together.
std::vector<Ratio> estimate_simultaneous_ratios(std::span<const RatioSample> claims, double confidence = 0.99,
                                                uint64_t seed = 0);

}  // namespace lissome

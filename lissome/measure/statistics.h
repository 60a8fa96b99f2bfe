// Statistics of timings: summaries, exact intervals of ratios, and intervals that hold for many claims at once.
#pragma once

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

// The median of the paired ratios numerator[i] / denominator[i]. Pairs are rounds of an interleaved run, so slow drift
// of the machine cancels. The interval lies between two order statistics (David and Nagaraja 2003, section 7.1): it
// asks of the noise only that a pair falls on either side of the true median equally likely, so it holds for skewed and
// bursty noise too.
struct Ratio {
  double median = 1;
  Interval interval;
  double confidence = 0.95;  // of the interval: as asked, or what the range of all ratios has, where those are too few
  double p_value = 1;        // two-sided sign test of "the median ratio is 1"
  bool below_one() const { return interval.high < 1; }
  bool above_one() const { return interval.low > 1; }
};
// The product of two ratios that were measured one after the other. Its confidence is 1 minus both error probabilities.
Ratio chain_ratios(const Ratio& first, const Ratio& second);
Ratio estimate_ratio(std::span<const double> numerator, std::span<const double> denominator, double confidence = 0.95);

// One claim: the samples behind a ratio.
struct RatioSample {
  std::vector<double> numerator, denominator;
};
// Holm's step-down procedure (Holm 1979) over all claims: the claim with the k-th smallest p-value gets an interval at
// confidence 1 - (1 - confidence) / (m - k + 1), so that with probability `confidence` all decisions hold together.
std::vector<Ratio> estimate_simultaneous_ratios(std::span<const RatioSample> claims, double confidence = 0.99);

}  // namespace lissome

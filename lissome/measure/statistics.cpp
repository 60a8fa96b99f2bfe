#include "lissome/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "lissome/base.h"

namespace lissome {
namespace {

double find_sorted_percentile(std::span<const double> sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (position - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

// Sorted.
std::vector<double> divide_pairs(std::span<const double> numerator, std::span<const double> denominator) {
  LISSOME_CHECK(numerator.size() == denominator.size() && !numerator.empty(), "a ratio needs paired samples");
  std::vector<double> ratios(numerator.size());
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] = numerator[i] / denominator[i];
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

// The terms of a binomial distribution of `count` fair coins, from 0 heads on.
class BinomialTerms {
 public:
  explicit BinomialTerms(size_t count)
      : count_(static_cast<double>(count)), log_term_(-static_cast<double>(count) * std::numbers::ln2) {}
  double next() {
    const double term = std::exp(log_term_);
    log_term_ += std::log((count_ - heads_) / (heads_ + 1));
    ++heads_;
    return term;
  }

 private:
  double count_, log_term_, heads_ = 0;
};

// The largest k for which fewer than k of `count` fair coins show heads with a probability of at most `tail`; 0: none.
size_t find_rank(size_t count, double tail) {
  BinomialTerms terms(count);
  size_t rank = 0;
  for (double sum = terms.next(); sum <= tail && 2 * (rank + 1) <= count; sum += terms.next()) ++rank;
  return rank;
}

// Two-sided. Ratios of exactly 1 speak for neither side.
double test_signs(std::span<const double> ratios) {
  const auto below = static_cast<size_t>(std::count_if(ratios.begin(), ratios.end(), [](double r) { return r < 1; }));
  const auto above = static_cast<size_t>(std::count_if(ratios.begin(), ratios.end(), [](double r) { return r > 1; }));
  if (below == above) return 1;
  BinomialTerms terms(below + above);
  double sum = 0;
  for (size_t heads = 0; heads <= std::min(below, above); ++heads) sum += terms.next();
  return std::min(1.0, 2 * sum);
}

// Of sorted ratios.
Ratio bound_median(std::span<const double> sorted, double confidence) {
  Ratio ratio;
  ratio.median = find_sorted_percentile(sorted, 0.5);
  ratio.p_value = test_signs(sorted);
  const size_t rank = find_rank(sorted.size(), (1 - confidence) / 2);
  ratio.confidence = rank > 0 ? confidence : 1 - std::exp2(1 - static_cast<double>(sorted.size()));
  const size_t first = std::max<size_t>(rank, 1) - 1;
  ratio.interval = {sorted[first], sorted[sorted.size() - 1 - first]};
  return ratio;
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

Ratio chain_ratios(const Ratio& first, const Ratio& second) {
  Ratio both;
  both.median = first.median * second.median;
  both.interval = {first.interval.low * second.interval.low, first.interval.high * second.interval.high};
  both.confidence = first.confidence - (1 - second.confidence);
  return both;
}

Ratio estimate_ratio(std::span<const double> numerator, std::span<const double> denominator, double confidence) {
  return bound_median(divide_pairs(numerator, denominator), confidence);
}

std::vector<Ratio> estimate_simultaneous_ratios(std::span<const RatioSample> claims, double confidence) {
  const size_t count = claims.size();
  std::vector<std::vector<double>> pairs;
  std::vector<double> p_values;
  for (const RatioSample& claim : claims) {
    pairs.push_back(divide_pairs(claim.numerator, claim.denominator));
    p_values.push_back(test_signs(pairs.back()));
  }
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<Ratio> ratios(count);
  double level = confidence;
  bool decided = true;
  for (size_t k = 0; k < count; ++k) {
    if (decided) level = 1 - (1 - confidence) / static_cast<double>(count - k);
    Ratio& ratio = ratios[order[k]];
    ratio = bound_median(pairs[order[k]], level);
    // Step-down: once one claim is not decided, no later one is.
    decided = decided && p_values[order[k]] <= 1 - level;
    if (decided) continue;
    ratio.interval.low = std::min(ratio.interval.low, 1.0);
    ratio.interval.high = std::max(ratio.interval.high, 1.0);
  }
  return ratios;
}

}  // namespace lissome

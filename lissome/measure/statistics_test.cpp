#include "lissome/measure/statistics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using namespace lissome;

TEST_CASE("a summary holds the textbook figures") {
  const std::vector<double> sample = {4, 1, 3, 2, 10};
  const Summary summary = summarize(sample);
  CHECK(summary.count == 5);
  CHECK(summary.median == 3);
  CHECK(summary.mean == 4);
  CHECK(summary.deviation == doctest::Approx(std::sqrt(12.5)));
  CHECK(summary.minimum == 1);
  CHECK(summary.maximum == 10);
  CHECK(find_percentile(sample, 0.25) == 2);
  CHECK(find_percentile(sample, 0.9) == doctest::Approx(7.6));
  CHECK(summarize({}).count == 0);
}

TEST_CASE("a real difference is found and its interval covers the truth") {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> noise(0, 0.1);
  std::vector<double> slow, fast;
  for (int i = 0; i < 100; ++i) {
    const double drift = 1 + 0.5 * std::sin(i / 10.0);  // shared by both of a pair
    slow.push_back(2 * drift * noise(random));
    fast.push_back(1.6 * drift * noise(random));
  }
  const Ratio ratio = estimate_ratio(fast, slow, 0.99);
  CHECK(ratio.below_one());
  CHECK(ratio.interval.low < 0.8);
  CHECK(ratio.interval.high > 0.8);
  CHECK(ratio.p_value < 0.01);
  CHECK(estimate_ratio(fast, slow, 0.99).interval.low == ratio.interval.low);  // same seed, same interval
}

TEST_CASE("without a difference the 95 % interval excludes 1 in about one run of twenty") {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> noise(0, 0.2);
  int wrong = 0;
  for (int run = 0; run < 200; ++run) {
    std::vector<double> a, b;
    for (int i = 0; i < 40; ++i) a.push_back(noise(random)), b.push_back(noise(random));
    const Ratio ratio = estimate_ratio(a, b, 0.95, static_cast<uint64_t>(run));
    wrong += ratio.below_one() || ratio.above_one();
  }
  CHECK(wrong <= 24);  // 10 expected; 24 is beyond four deviations
}

TEST_CASE("Holm keeps many null claims quiet and still finds the true one") {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> noise(0, 0.1);
  int families_wrong = 0;
  for (int family = 0; family < 10; ++family) {
    std::vector<RatioSample> claims(12);
    for (size_t c = 0; c < claims.size(); ++c) {
      for (int i = 0; i < 40; ++i) {
        claims[c].numerator.push_back(noise(random) * (c == 5 ? 0.7 : 1.0));
        claims[c].denominator.push_back(noise(random));
      }
    }
    const std::vector<Ratio> ratios = estimate_simultaneous_ratios(claims, 0.99, static_cast<uint64_t>(family));
    CHECK(ratios[5].below_one());
    bool wrong = false;
    for (size_t c = 0; c < ratios.size(); ++c) wrong |= c != 5 && (ratios[c].below_one() || ratios[c].above_one());
    families_wrong += wrong;
  }
  CHECK(families_wrong <= 1);
}

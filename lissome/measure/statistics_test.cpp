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
}

TEST_CASE("intervals lie between the order statistics of the textbook's table") {
  std::vector<double> ratios, ones(25, 1.0);
  for (int i = 1; i <= 25; ++i) ratios.push_back(i);
  const Ratio wide = estimate_ratio(ratios, ones, 0.95), strict = estimate_ratio(ratios, ones, 0.999);
  CHECK(wide.median == 13);
  CHECK(wide.interval.low == 8);
  CHECK(wide.interval.high == 18);
  CHECK(wide.confidence == 0.95);
  CHECK(strict.interval.low == 5);
  CHECK(strict.interval.high == 21);
  const std::vector<double> five(5, 1.0);
  const Ratio few = estimate_ratio({ratios.data(), 5}, five, 0.95);
  CHECK(few.interval.low == 1);
  CHECK(few.interval.high == 5);
  CHECK(few.confidence == 1 - 2 / 32.0);
  CHECK(estimate_ratio({ratios.data(), 1}, {five.data(), 1}, 0.95).confidence == 0);
}

TEST_CASE("the p-value is that of a sign test, in which ties speak for neither side") {
  const auto test = [](const std::vector<double>& ratios) {
    return estimate_ratio(ratios, std::vector<double>(ratios.size(), 1.0)).p_value;
  };
  CHECK(test(std::vector<double>(10, 0.5)) == doctest::Approx(2 / 1024.0));
  CHECK(test({0.5, 0.5, 0.5, 0.5, 2}) == doctest::Approx(2 * 6 / 32.0));
  CHECK(test({0.5, 0.5, 0.5, 1, 1, 1}) == doctest::Approx(2 / 8.0));
  CHECK(test({0.5, 2}) == 1);
  CHECK(test({1, 1, 1}) == 1);
  CHECK(test(std::vector<double>(3000, 2)) < 1e-300);
}

TEST_CASE("without a difference the 95 % interval excludes 1 in at most one run of twenty") {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> noise(0, 0.2);
  constexpr int kRuns = 4000;
  int wrong = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> a, b;
    for (int i = 0; i < 40; ++i) a.push_back(noise(random)), b.push_back(noise(random));
    const Ratio ratio = estimate_ratio(a, b, 0.95);
    wrong += ratio.below_one() || ratio.above_one();
  }
  // Of 40 pairs the interval holds in 96.15 %: at most and at least five deviations from that.
  CHECK(wrong <= 0.0385 * kRuns + 61);
  CHECK(wrong >= 0.0385 * kRuns - 61);
}

TEST_CASE("Holm keeps many null claims quiet and still finds the true one") {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> noise(0, 0.1);
  constexpr int kFamilies = 2000;
  int families_wrong = 0;
  for (int family = 0; family < kFamilies; ++family) {
    std::vector<RatioSample> claims(12);
    for (size_t c = 0; c < claims.size(); ++c) {
      for (int i = 0; i < 40; ++i) {
        claims[c].numerator.push_back(noise(random) * (c == 5 ? 0.7 : 1.0));
        claims[c].denominator.push_back(noise(random));
      }
    }
    const std::vector<Ratio> ratios = estimate_simultaneous_ratios(claims, 0.99);
    REQUIRE(ratios[5].below_one());
    bool wrong = false;
    for (size_t c = 0; c < ratios.size(); ++c) wrong |= c != 5 && (ratios[c].below_one() || ratios[c].above_one());
    families_wrong += wrong;
  }
  MESSAGE(families_wrong << " of " << kFamilies << " families of 11 null claims hold a false one");
  CHECK(families_wrong <= kFamilies / 100);
}

TEST_CASE("each decided claim makes the next one easier") {
  // Of thirteen pairs: all below 1, twelve, ten. At 99 % the second needs 1/200 where 1/300 would refuse it.
  const auto claim = [](size_t below) {
    RatioSample sample{std::vector<double>(13, 2.0), std::vector<double>(13, 1.0)};
    std::fill_n(sample.numerator.begin(), below, 0.5);
    return sample;
  };
  const std::vector<Ratio> ratios = estimate_simultaneous_ratios(std::vector{claim(10), claim(12), claim(13)}, 0.99);
  CHECK(ratios[1].p_value == doctest::Approx(2 * 14 / 8192.0));
  CHECK(ratios[2].below_one());
  CHECK(ratios[1].below_one());
  CHECK_FALSE(ratios[0].below_one());
}

TEST_CASE("a chain of ratios is as wide as both, and less sure than each") {
  Ratio first, second;
  first.median = 0.5, first.interval = {0.4, 0.6}, first.confidence = 0.99;
  second.median = 0.8, second.interval = {0.7, 0.9}, second.confidence = 0.95;
  const Ratio both = chain_ratios(first, second);
  CHECK(both.median == doctest::Approx(0.4));
  CHECK(both.interval.low == doctest::Approx(0.28));
  CHECK(both.interval.high == doctest::Approx(0.54));
  CHECK(both.confidence == doctest::Approx(0.94));
}

TEST_CASE("a claim that is not decided leaves those behind it undecided") {
  // Of twelve pairs: all below 1, eleven, ten. Holm asks the three for 1/300, 1/200 and 1/100 at 99 %.
  const auto claim = [](int below) {
    RatioSample sample{std::vector<double>(12, 2.0), std::vector<double>(12, 1.0)};
    for (int i = 0; i < below; ++i) sample.numerator[static_cast<size_t>(i)] = 0.5;
    return sample;
  };
  const std::vector<Ratio> alone = estimate_simultaneous_ratios(std::vector{claim(12)}, 0.99);
  CHECK(alone[0].below_one());
  const std::vector<Ratio> ratios = estimate_simultaneous_ratios(std::vector{claim(11), claim(12), claim(11)}, 0.99);
  CHECK(ratios[1].below_one());                    // p = 0.0005
  for (const size_t i : {size_t{0}, size_t{2}}) {  // p = 0.0063, which 0.01 would allow the last of them
    CHECK_FALSE(ratios[i].below_one());
    CHECK(ratios[i].interval.high >= 1);
    CHECK(ratios[i].p_value == doctest::Approx(2 * 13 / 4096.0));
  }
}

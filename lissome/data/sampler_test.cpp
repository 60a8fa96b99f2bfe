#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "lissome/data/sampler.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

std::vector<int64_t> sorted(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<int64_t> count_up(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), int64_t{0});
  return values;
}

}  // namespace

TEST_CASE("sequential batches go through all samples, the last may be short") {
  const Sampler sampler(10, {.order = SequentialOrder{}, .batch = 4});
  const EpochPlan plan = sampler.plan(3);
  CHECK(plan.samples == count_up(10));
  CHECK(sampler.batches() == 3);
  CHECK(plan.batches() == 3);
  CHECK(plan.take(2).size() == 2);
  CHECK(plan.take(2)[0] == 8);
}

TEST_CASE("drop_last leaves out a batch that is not full") {
  const Sampler sampler(10, {.batch = 4, .drop_last = true});
  CHECK(sampler.batches() == 2);
  CHECK(sampler.plan(0).samples.size() == 8);
  EXPECT_ERROR(usage, Sampler(3, {.batch = 4, .drop_last = true}), "3 samples fill no batch of 4");
}

TEST_CASE("shuffled: every sample once, another order for each epoch and seed, the same for the same") {
  const Sampler one(100, {.seed = 1}), two(100, {.seed = 2});
  std::set<std::vector<int64_t>> orders;
  for (const Sampler* sampler : {&one, &two})
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      const std::vector<int64_t> samples = sampler->plan(epoch).samples;
      CHECK(sorted(samples) == count_up(100));
      orders.insert(samples);
    }
  CHECK(orders.size() == 8);
  CHECK(one.plan(2).samples == Sampler(100, {.seed = 1}).plan(2).samples);
}

TEST_CASE("weighted with replacement: as often as the weights say") {
  const Sampler sampler(4, {.order = WeightedOrder{{1, 0, 3, 4}, 80000}, .batch = 100, .seed = 5});
  CHECK(sampler.batches() == 800);
  std::map<int64_t, int> seen;
  for (const int64_t sample : sampler.plan(0).samples) ++seen[sample];
  CHECK(seen.count(1) == 0);
  // Five standard deviations of the binomial distribution.
  CHECK(std::abs(seen[0] - 10000) < 5 * std::sqrt(80000 * 0.125 * 0.875));
  CHECK(std::abs(seen[2] - 30000) < 5 * std::sqrt(80000 * 0.375 * 0.625));
  CHECK(std::abs(seen[3] - 40000) < 5 * std::sqrt(80000 * 0.5 * 0.5));
}

TEST_CASE("weighted without replacement: no sample twice, heavy ones first") {
  const WeightedOrder order{{1, 0, 3, 4}, 2, false};
  const Sampler sampler(4, {.order = order, .batch = 2});
  int first_is_heaviest = 0;
  constexpr int kEpochs = 4000;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t> drawn = sampler.plan(epoch).samples;
    REQUIRE(drawn.size() == 2);
    CHECK(drawn[0] != drawn[1]);
    CHECK(std::count(drawn.begin(), drawn.end(), 1) == 0);
    first_is_heaviest += drawn[0] == 3 ? 1 : 0;
  }
  CHECK(std::abs(first_is_heaviest - kEpochs / 2) < 5 * std::sqrt(kEpochs * 0.25));
}

TEST_CASE("a subset is gone over in its own order or shuffled") {
  const std::vector<int64_t> subset = {7, 3, 9};
  CHECK(Sampler(10, {.order = SequentialOrder{}, .subset = subset}).plan(0).samples == subset);
  CHECK(sorted(Sampler(10, {.subset = subset}).plan(1).samples) == std::vector<int64_t>{3, 7, 9});
}

TEST_CASE("length buckets: like lengths share a batch, every sample comes once") {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 1000; ++i) lengths.push_back(i * 7919 % 500);
  const Sampler sampler(1000, {.order = LengthBucketedOrder{lengths, 25}, .batch = 8});
  const auto count_padding = [&](const EpochPlan& plan) {
    int64_t padding = 0;
    for (int64_t b = 0; b < plan.batches(); ++b) {
      int64_t longest = 0, total = 0;
      for (const int64_t sample : plan.take(b)) {
        longest = std::max(longest, lengths[static_cast<size_t>(sample)]);
        total += lengths[static_cast<size_t>(sample)];
      }
      padding += longest * static_cast<int64_t>(plan.take(b).size()) - total;
    }
    return padding;
  };
  CHECK(sorted(sampler.plan(0).samples) == count_up(1000));
  CHECK(sampler.plan(0).samples != sampler.plan(1).samples);
  const int64_t bucketed = count_padding(sampler.plan(0)),
                shuffled = count_padding(Sampler(1000, {.batch = 8}).plan(0));
  CHECK(bucketed * 10 < shuffled);
  // A pool that is larger than the epoch, and sizes that would overflow.
  const Sampler wide(3, {.order = LengthBucketedOrder{{1, 2, 3}, INT64_MAX}, .batch = INT64_MAX});
  CHECK(wide.plan(0).samples == count_up(3));
}

TEST_CASE("samplers that cannot be are refused") {
  EXPECT_ERROR(invalid_input, Sampler(0, {}), "no samples");
  EXPECT_ERROR(usage, Sampler(3, {.batch = 0}), "a batch of 0");
  EXPECT_ERROR(usage, Sampler(3, {.subset = std::vector<int64_t>{3}}), "sample 3", "0 to 2");
  EXPECT_ERROR(usage, Sampler(3, {.subset = std::vector<int64_t>{}}), "empty");
  EXPECT_ERROR(usage, Sampler(3, {.order = WeightedOrder{{1, 2}}}), "2 weights were given for 3 samples");
  EXPECT_ERROR(usage, Sampler(2, {.order = WeightedOrder{{1, NAN}}}), "sample 1", "nan");
  EXPECT_ERROR(usage, Sampler(2, {.order = WeightedOrder{{0, 0}}}), "all 2 weights are 0");
  EXPECT_ERROR(usage, Sampler(2, {.order = WeightedOrder{{1, 0}, 2, false}}), "2 draws without replacement");
  EXPECT_ERROR(usage, Sampler(2, {.order = LengthBucketedOrder{{1}}}), "1 lengths were given for 2 samples");
}

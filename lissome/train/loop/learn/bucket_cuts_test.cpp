// Cuts of gradients into buckets: by size, and by time as good as the best of all cuts.
#include "lissome/train/loop/learn/bucket_cuts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>

using namespace lissome;

TEST_CASE("buckets end with the gradient that fills them") {
  const std::vector<int64_t> bytes = {4, 4, 4, 20, 4, 4, 4};
  CHECK(cut_by_size(bytes, 8, 8) == BucketEnds{2, 4, 6, 7});
  CHECK(cut_by_size(bytes, 1, 100) == BucketEnds{1, 7});
  CHECK(cut_by_size(bytes, 1000, 1000) == BucketEnds{7});
  CHECK(cut_by_size(bytes, 1, 1) == BucketEnds{1, 2, 3, 4, 5, 6, 7});
  CHECK(cut_by_size({}, 1, 1).empty());
}

TEST_CASE("no cut ends sooner than the one that is chosen by time") {
  std::mt19937_64 random(5);
  const auto draw = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
  for (int round = 0; round < 200; ++round) {
    const size_t count = 1 + random() % 9;
    std::vector<int64_t> bytes;
    std::vector<double> ready;
    for (size_t i = 0; i < count; ++i) {
      bytes.push_back(1 + static_cast<int64_t>(draw(1000)));
      ready.push_back((i == 0 ? 0 : ready.back()) + draw(1) - (round % 3 == 0 ? 0.3 : 0));  // not always in order
    }
    const LinkCost cost = {.start = draw(0.5), .per_byte = draw(2e-3)};
    double least = std::numeric_limits<double>::infinity();
    for (size_t mask = 0; mask < size_t{1} << (count - 1); ++mask) {
      BucketEnds ends;
      for (size_t i = 0; i + 1 < count; ++i) {
        if (mask >> i & 1) ends.push_back(i + 1);
      }
      ends.push_back(count);
      least = std::min(least, predict_end(bytes, ready, cost, ends));
    }
    const BucketEnds chosen = cut_by_time(bytes, ready, cost);
    CHECK(is_cut(chosen, count));
    CHECK(predict_end(bytes, ready, cost, chosen) == doctest::Approx(least));
  }
}

TEST_CASE("ends from elsewhere are checked") {
  CHECK(is_cut({2, 5}, 5));
  CHECK(is_cut({}, 0));
  for (const BucketEnds& ends : {BucketEnds{}, {0, 5}, {2, 2, 5}, {3, 2, 5}, {2, 4}, {2, 6}})
    CHECK_FALSE(is_cut(ends, 5));
}

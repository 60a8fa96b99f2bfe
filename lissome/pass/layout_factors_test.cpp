// The shortest way that the factors of sizes tell, for chains that networks have; random chains against ATen.
#include "lissome/pass/layout_factors.h"

#include <ATen/ops/arange.h>
#include <doctest/doctest.h>

#include <random>

namespace lissome {
namespace {

using Numbers = std::vector<int64_t>;
using Dims = std::vector<Dimension>;

Dims dims(const std::vector<std::string>& texts) {
  Dims sizes;
  for (const std::string& text : texts) sizes.push_back(Dimension::parse(text));
  return sizes;
}

TEST_CASE("heads of torch's multi-head attention: a split, a selection, a permutation") {
  LayoutFactors factors(dims({"17", "n", "192"}));
  REQUIRE(factors.reshape(dims({"17", "n", "3", "64"})));
  REQUIRE(factors.reshape(dims({"1", "17", "n", "3", "64"})));
  REQUIRE(factors.permute({3, 1, 2, 0, 4}));
  REQUIRE(factors.reshape(dims({"3", "17", "n", "64"})));
  REQUIRE(factors.select(0, -1));
  REQUIRE(factors.reshape(dims({"17", "4*n", "16"})));
  REQUIRE(factors.permute({1, 0, 2}));
  REQUIRE(factors.reshape(dims({"n", "4", "17", "16"})));
  const LayoutFactors::Way way = factors.find_way();
  CHECK(way.count() == 3);
  CHECK((way.split == dims({"17", "n", "3", "4", "16"})));
  CHECK((way.selections == std::vector<std::pair<int64_t, int64_t>>{{2, 2}}));
  CHECK((way.order == Numbers{1, 2, 0, 3}));
  CHECK_FALSE(way.merge);
}

TEST_CASE("what comes back to where it was, or only looks like a move, is a reshape or nothing") {
  LayoutFactors back(dims({"n", "12", "m"}));
  REQUIRE(back.permute({1, 2, 0}));
  REQUIRE(back.reshape(dims({"3", "4", "m", "n"})));
  REQUIRE(back.permute({3, 0, 1, 2}));
  REQUIRE(back.reshape(dims({"n", "12", "m"})));
  CHECK(back.find_way().count() == 0);
  LayoutFactors ones(dims({"1", "n", "8"}));
  REQUIRE(ones.permute({1, 0, 2}));
  const LayoutFactors::Way way = ones.find_way();
  CHECK(way.count() == 1);
  CHECK((way.merge == dims({"n", "1", "8"})));
}

TEST_CASE("sizes that do not divide cannot be told apart") {
  CHECK_FALSE(LayoutFactors(dims({"6", "4"})).reshape(dims({"4", "6"})));
  CHECK_FALSE(LayoutFactors(dims({"n", "4"})).reshape(dims({"m", "4"})));
  CHECK_FALSE(LayoutFactors(dims({"n"})).reshape(dims({"n//2", "2"})));
  LayoutFactors joined(dims({"2", "3"}));
  REQUIRE(joined.reshape(dims({"6"})));
  CHECK_FALSE(joined.select(0, 4));  // of two factors at once
}

// The way, done by ATen.
at::Tensor follow(const LayoutFactors::Way& way, at::Tensor tensor) {
  const auto numbers = [](const Dims& sizes) {
    Numbers all;
    for (const Dimension& size : sizes) all.push_back(size.evaluate({{"n", 5}, {"m", 7}}));
    return all;
  };
  if (way.split) tensor = tensor.reshape(numbers(*way.split));
  for (const auto& [dim, index] : way.selections) tensor = tensor.select(dim, index);
  if (way.order) tensor = tensor.permute(*way.order);
  if (way.merge) tensor = tensor.reshape(numbers(*way.merge));
  return tensor;
}

TEST_CASE("random chains come to the same elements in the same places") {
  const Dims source = dims({"n", "4", "1", "6", "m"});
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    LayoutFactors factors(source);
    const at::Tensor start = at::arange(5 * 4 * 6 * 7).reshape({5, 4, 1, 6, 7});
    at::Tensor seen = start;
    Dims sizes = source;
    for (int step = 0; step < 6; ++step) {
      const uint64_t kind = random() % 5;
      const size_t dim = sizes.empty() ? 0 : random() % sizes.size();
      if (kind == 0 && sizes.size() >= 2) {
        Numbers order(sizes.size());
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        REQUIRE(factors.permute(order));
        Dims moved;
        for (const int64_t one : order) moved.push_back(sizes[static_cast<size_t>(one)]);
        sizes = moved;
        seen = seen.permute(order);
      } else if (kind == 1 && dim + 1 < sizes.size()) {
        sizes[dim] = Dimension::combine(Dimension::Operation::multiply, sizes[dim], sizes[dim + 1]);
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
        if (!factors.reshape(sizes)) break;  // a product of three unknowns, say
        seen = seen.flatten(static_cast<int64_t>(dim), static_cast<int64_t>(dim) + 1);
      } else if (kind == 2 && dim < sizes.size() && sizes[dim].constant() && *sizes[dim].constant() % 2 == 0) {
        const int64_t half = *sizes[dim].constant() / 2;
        sizes[dim] = Dimension(2);
        sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim) + 1, Dimension(half));
        if (!factors.reshape(sizes)) break;  // a product of 3 and 2, say
        seen = seen.unflatten(static_cast<int64_t>(dim), {2, half});
      } else if (kind == 3) {
        sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), Dimension(1));
        REQUIRE(factors.reshape(sizes));
        seen = seen.unsqueeze(static_cast<int64_t>(dim));
      } else if (kind == 4 && dim < sizes.size() && sizes[dim].constant() && *sizes[dim].constant() > 1) {
        const auto index = static_cast<int64_t>(random() % static_cast<uint64_t>(*sizes[dim].constant()));
        if (!factors.select(static_cast<int64_t>(dim), index)) break;
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
        seen = seen.select(static_cast<int64_t>(dim), index);
      }
      REQUIRE(follow(factors.find_way(), start).equal(seen));
    }
  }
}

}  // namespace
}  // namespace lissome

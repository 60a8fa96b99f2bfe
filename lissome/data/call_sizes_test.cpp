#include "lissome/data/call_sizes.h"

#include <doctest/doctest.h>

#include "tests/expect_error.h"

namespace lissome {
namespace {

SizeFormula constant(int64_t size) {
  return [size](std::span<const int64_t>) { return size; };
}
SizeFormula dimension(size_t position, int64_t factor = 1) {
  return [=](std::span<const int64_t> values) { return factor * values[position]; };
}

TEST_CASE("a batch from 1 on") {
  const CallSizes sizes({{1, 64}}, {{dimension(0), constant(3)}, {dimension(0)}, {}});
  CHECK(sizes.choose(0) == std::vector<Sizes>{{1, 3}, {1}, {}});
  CHECK(sizes.choose(5) == std::vector<Sizes>{{5, 3}, {5}, {}});
  EXPECT_ERROR(usage, sizes.choose(65), "a batch of 65", "batches of 1 to 64");
}

TEST_CASE("a batch that torch.export let begin at 2, and one that is fixed") {
  const CallSizes open({{2, INT64_MAX}}, {{dimension(0), constant(3)}});
  CHECK(open.choose(0) == std::vector<Sizes>{{2, 3}});
  EXPECT_ERROR(usage, open.choose(1), "batches of 2 and more");
  const CallSizes fixed({}, {{constant(4), constant(3)}});
  CHECK(fixed.batch().is_fixed());
  CHECK(fixed.choose(0) == std::vector<Sizes>{{4, 3}});
  CHECK(fixed.choose(4) == std::vector<Sizes>{{4, 3}});
  EXPECT_ERROR(usage, fixed.choose(1), "only batches of 4");
}

TEST_CASE("sizes of one dimension go together and stay in its range") {
  const CallSizes sizes({{0, 8}, {3, 12}, {32, 64}},
                        {{dimension(0), dimension(1), dimension(2)}, {dimension(0), dimension(1, 2)}});
  CHECK(sizes.batch().least == 1);
  CHECK(sizes.choose(0) == std::vector<Sizes>{{1, 12, 32}, {1, 24}});
}

TEST_CASE("a first size that is computed makes a batch of its own") {
  const CallSizes sizes({{2, 8}}, {{dimension(0, 2), constant(3)}, {constant(1), dimension(0)}});
  CHECK(sizes.batch().is_fixed());
  CHECK(sizes.batch().least == 4);
}

}  // namespace
}  // namespace lissome

// How the limit of the quick searches moves.
#include "lissome/train/budget/search/fitting_limit.h"

#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("the limit moves with the room, by a fifth at most, and ends where the plan fills the budget") {
  FittingLimit limit(1000);
  CHECK(limit.move(1.1, 1000, true));
  CHECK(limit.limit() == doctest::Approx(1100));
  CHECK(limit.move(0.5, 1090, true));  // 872 is below what fitted: halfway between the two
  CHECK(limit.limit() == doctest::Approx(1045));
  CHECK_FALSE(limit.move(1.01, 1040, true));
  FittingLimit far(1000);
  CHECK(far.move(0.5, 990, true));
  CHECK(far.limit() == doctest::Approx(792));
}

TEST_CASE("where the search ends above the limit, a little more is tried, unless the plan is far too large") {
  FittingLimit limit(1000);
  CHECK(limit.move(0.95, 1200, false));
  CHECK(limit.limit() == doctest::Approx(1020));
  CHECK_FALSE(limit.move(0.8, 1500, false));
}

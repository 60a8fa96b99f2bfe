// Of two planned steps, one is better.
#include "lissome/train/budget/search/planned_step.h"

#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("fitting comes first, then time; of steps that do not fit the smaller is better") {
  PlannedStep slow, fast, large, larger;
  slow.memory.arena = 60, slow.memory.held = 30, slow.seconds = 2;
  fast.memory.arena = 100, fast.seconds = 1;
  large.memory.arena = 120, large.seconds = 0.9;
  larger.memory.arena = 130, larger.seconds = 0.5;
  CHECK(fits_budget(slow, 90));
  CHECK_FALSE(fits_budget(fast, 90));
  CHECK(fits_budget(larger, 0));
  CHECK(is_better_step(fast, slow, 100));
  CHECK_FALSE(is_better_step(slow, fast, 100));
  CHECK(is_better_step(slow, fast, 90));
  CHECK(is_better_step(slow, large, 100));
  CHECK(is_better_step(large, larger, 100));
  CHECK_FALSE(is_better_step(fast, fast, 100));
}

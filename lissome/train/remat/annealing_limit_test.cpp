#include "lissome/train/remat/annealing_limit.h"

#include <doctest/doctest.h>

using namespace lissome;

TEST_CASE("the least that plans took more than their judge saw leaves the most room") {
  AnnealingLimit limit(1000);
  limit.note(4000, 4020);
  CHECK(limit.most() == 980);
  CHECK(limit.careful() == 980);
  limit.note(970, 1100);  // gaps
  CHECK(limit.most() == 980);
  limit.note(985, 990);
  CHECK(limit.most() == 995);
}

TEST_CASE("careful is a little below what did not fit, and not below what did") {
  AnnealingLimit limit(1000);
  limit.note(4000, 4000);
  limit.note(900, 1010);
  CHECK(limit.most() == 1000);
  CHECK(limit.careful() == 882);
  limit.note(940, 990);
  CHECK(limit.careful() == 940);
}

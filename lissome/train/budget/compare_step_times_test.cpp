#include "lissome/train/budget/compare_step_times.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

namespace lissome {
namespace {

auto sleep_for(int milliseconds) {
  return [milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
}

TEST_CASE("a way that takes a tenth of the time pays, and the slower one never does" *
          doctest::test_suite("measured")) {
  const auto slow = sleep_for(30), fast = sleep_for(3);
  CHECK(compare_step_times(slow, fast).pays);
  const StepComparison backward = compare_step_times(fast, slow);
  CHECK_FALSE(backward.pays);
  CHECK(backward.factor.find(" times as long [") != std::string::npos);
}

}  // namespace
}  // namespace lissome

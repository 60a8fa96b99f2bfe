#include "lissome/program/shape/fit_sizes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

using namespace lissome;

namespace {

// The expression that fit_size finds for `function` at a few sizes, as text; "none" when it finds none.
std::string fit(const std::function<int64_t(int64_t batch, int64_t steps)>& function) {
  std::vector<SizeSample> samples;
  for (const auto& [batch, steps] : {std::pair<int64_t, int64_t>{2, 7}, {5, 7}, {2, 12}, {5, 12}}) {
    samples.push_back({{{"batch", batch}, {"steps", steps}}, function(batch, steps)});
  }
  const auto expression = fit_size(samples);
  return expression ? expression->print() : "none";
}

}  // namespace

TEST_CASE("numbers that sizes explain become expressions, the simplest first") {
  CHECK(fit([](int64_t, int64_t) { return 64; }) == "64");
  CHECK(fit([](int64_t batch, int64_t) { return batch; }) == "batch");
  CHECK(fit([](int64_t, int64_t steps) { return 2 * steps - 1; }) == Dimension::parse("2*steps - 1").print());
  CHECK(fit([](int64_t batch, int64_t steps) { return batch * steps * 8; }) ==
        Dimension::parse("8*batch*steps").print());
  CHECK(fit([](int64_t, int64_t steps) { return (steps - 1) / 2 + 1; }) == Dimension::parse("(steps + 1)//2").print());
}

TEST_CASE("squares, halves from above and bounds are found at four sizes") {
  const auto fit_one = [](const std::function<int64_t(int64_t)>& function) {
    std::vector<SizeSample> samples;
    for (const int64_t n : {3, 4, 6, 9}) samples.push_back({{{"n", n}}, function(n)});
    const auto expression = fit_size(samples);
    return expression ? expression->print() : "none";
  };
  CHECK(fit_one([](int64_t n) { return n * n; }) == Dimension::parse("n*n").print());
  CHECK(fit_one([](int64_t n) { return 2 * n * n + 1; }) == Dimension::parse("2*n*n + 1").print());
  CHECK(fit_one([](int64_t n) { return -(n / 2); }) == Dimension::parse("(1 - n)//2").print());
  CHECK(fit_one([](int64_t n) { return 6 * std::min<int64_t>(n, 5); }) == Dimension::parse("Min(6*n, 30)").print());
  CHECK(fit_one([](int64_t n) { return std::min<int64_t>(n, 8); }) == "none");  // the bound is seen once
  CHECK(fit_one([](int64_t n) { return n == 6 ? 7 : n; }) == "none");
}

TEST_CASE("numbers that nothing simple explains are left alone") {
  CHECK(fit([](int64_t batch, int64_t steps) { return batch == 5 ? 17 : steps % 4; }) == "none");
  CHECK(fit([](int64_t batch, int64_t steps) { return batch * batch + steps; }) == "none");
}

#include "lissome/program/fit_sizes.h"

#include <doctest/doctest.h>

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

TEST_CASE("numbers that nothing simple explains are left alone") {
  CHECK(fit([](int64_t batch, int64_t steps) { return batch == 5 ? 17 : steps % 4; }) == "none");
  CHECK(fit([](int64_t batch, int64_t steps) { return batch * batch + steps; }) == "none");
}

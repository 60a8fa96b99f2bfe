// Which weights a training returns.
#include "lissome/train/loop/result_weights.h"

#include <ATen/ops/full.h>
#include <doctest/doctest.h>

#include "tests/expect_error.h"

using namespace lissome;

namespace {

double first_of(const at::Tensor& tensor) { return tensor[0].item<double>(); }

}  // namespace

TEST_CASE("without options the last weights are returned") {
  const at::Tensor weight = at::full({2}, 1.0);
  ResultWeights results({weight}, {}, {});
  weight.fill_(5);
  results.follow_update();
  CHECK_FALSE(results.observe(1));
  results.choose();
  CHECK(first_of(weight) == 5);
  CHECK(results.early_stop() == nullptr);
  CHECK(results.average() == nullptr);
}

TEST_CASE("averages stand in for the weights while they are swapped, and are returned") {
  const at::Tensor weight = at::full({2}, 1.0);
  ResultWeights results({weight}, {}, 0.5);
  weight.fill_(5);
  results.follow_update();
  results.swap_averages();
  CHECK(first_of(weight) == 3);
  results.swap_averages();
  CHECK(first_of(weight) == 5);
  results.choose();
  CHECK(first_of(weight) == 3);
}

TEST_CASE("early stopping keeps the averages of the best metric") {
  const at::Tensor weight = at::full({2}, 1.0);
  ResultWeights results({weight}, EarlyStopOptions{.patience = 1}, 0.5);
  weight.fill_(5);
  results.follow_update();
  CHECK_FALSE(results.observe(1));
  CHECK(first_of(weight) == 5);
  weight.fill_(101);
  results.follow_update();
  CHECK(results.observe(2));
  CHECK(first_of(weight) == 101);
  results.choose();
  CHECK(first_of(weight) == 3);
  EXPECT_ERROR(invalid_input, ResultWeights({}, EarlyStopOptions{.patience = 0}, {}), "patience");
}

#include "lissome/train/loop/early_stop.h"

#include <ATen/ops/full.h>

#include "lissome/base.h"
#include "lissome/train/optim/moving_average.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

at::Tensor make_tensor(double value) { return at::full({3}, value); }
double value_of(const at::Tensor& tensor) { return tensor[1].item<double>(); }

}  // namespace

TEST_CASE("training ends after `patience` metrics without a better one, with the best weights") {
  const at::Tensor weight = make_tensor(0).requires_grad_(true);
  EarlyStop stop({weight}, {.patience = 2, .min_delta = 0.1});
  const double metrics[] = {1, 0.95, 0.5, 0.45, 0.6};
  const bool best[] = {true, false, true, false, false};
  for (int i = 0; i < 5; ++i) {
    CHECK(!stop.should_stop());
    weight.detach().fill_(i);
    CHECK(stop.observe(metrics[i]) == best[i]);
  }
  CHECK(stop.should_stop());
  CHECK(stop.best() == 0.5);
  stop.restore_best();
  CHECK(value_of(weight) == 2);
}

TEST_CASE("higher metrics are the better ones where asked, and NaN never is") {
  EarlyStop stop({}, {.patience = 2, .better = Better::higher});
  CHECK(!stop.observe(std::numeric_limits<double>::quiet_NaN()));
  CHECK(stop.observe(0.1));
  CHECK(!stop.observe(std::numeric_limits<double>::quiet_NaN()));
  CHECK(stop.observe(0.2));
  CHECK(!stop.observe(0.2));
  CHECK(!stop.should_stop());
  CHECK(!stop.observe(0.1));
  CHECK(stop.should_stop());
}

TEST_CASE("nothing is restored before the first metric") {
  const at::Tensor weight = make_tensor(3);
  EarlyStop({weight}).restore_best();
  CHECK(value_of(weight) == 3);
}

TEST_CASE("a moving average follows the weights, copies counters and can stand in for them") {
  const at::Tensor weight = make_tensor(1).requires_grad_(true), counter = at::full({3}, 5, at::kLong);
  MovingAverage average({weight, counter}, 0.75);
  weight.detach().fill_(5);
  counter.fill_(6);
  average.update();
  CHECK(value_of(average.averages()[0]) == 2);  // 0.75 * 1 + 0.25 * 5
  CHECK(value_of(average.averages()[1]) == 6);
  average.swap();
  CHECK(value_of(weight) == 2);
  average.swap();
  CHECK(value_of(weight) == 5);
  CHECK(value_of(average.averages()[0]) == 2);
}

TEST_CASE("early stopping and averages refuse what makes no sense") {
  EXPECT_ERROR(invalid_input, EarlyStop({}, {.patience = 0}), "patience must be at least 1", "not 0 and 0");
  EXPECT_ERROR(invalid_input, EarlyStop({}, {.min_delta = -1}), "min_delta at least 0");
  EXPECT_ERROR(invalid_input, MovingAverage({}, 1.5), "in 0..1, not 1.5");
}

// The scale after any run of skipped and taken steps is that of torch.amp.GradScaler.
#include "lissome/train/optim/loss_scaler.h"

#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/scalar_tensor.h>
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "tests/expect_error.h"

using namespace lissome;

TEST_CASE("growth and backoff are those of PyTorch's own update") {
  const LossScalerOptions options{.initial = 1024, .growth = 3, .backoff = 0.3, .interval = 4};
  LossScaler scaler(options);
  at::Tensor scale = at::scalar_tensor(1024.0F), tracker = at::scalar_tensor(0, at::kInt);
  std::mt19937 random(1);
  for (int step = 0; step < 400; ++step) {
    const bool skipped = random() % 8 == 0;
    at::_amp_update_scale_(scale, tracker, at::scalar_tensor(skipped ? 1.0F : 0.0F), options.growth, options.backoff,
                           options.interval);
    scaler.update(skipped);
    REQUIRE(scaler.scale() == scale.item().toDouble());
  }
}

TEST_CASE("the scale does not grow out of f32") {
  LossScaler scaler({.interval = 1});
  for (int step = 0; step < 200; ++step) scaler.update(false);
  CHECK(scaler.scale() == std::ldexp(1.0, 127));
}

TEST_CASE("the state brings another scaler to the same place") {
  LossScaler first({.interval = 5}), second({.interval = 5});
  for (const bool skipped : {false, true, false, false, false}) first.update(skipped);
  second.restore_state(first.state());
  for (int step = 0; step < 20; ++step) {
    CHECK(second.scale() == first.scale());
    first.update(false), second.update(false);
  }
  EXPECT_ERROR(invalid_input, second.restore_state({}), "loss_scale");
  EXPECT_ERROR(invalid_input, second.restore_state({{"loss_scale", at::scalar_tensor(0.0F)}, first.state()[1]}),
               "above 0");
  CHECK(second.scale() == first.scale());
}

TEST_CASE("options out of range are refused") {
  EXPECT_ERROR(invalid_input, LossScaler({.initial = 0}), "must be above 0");
  EXPECT_ERROR(invalid_input, LossScaler({.growth = 1}), "growth");
  EXPECT_ERROR(invalid_input, LossScaler({.backoff = 1}), "backoff");
  EXPECT_ERROR(invalid_input, LossScaler({.interval = 0}), "interval");
}

// What watches a training: the monitor, the course of steps, metrics and hooks.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include "lissome/train/loop/performance_monitor.h"
#include "lissome/train/optim/gradient_hooks.h"
#include "lissome/train/step/metric.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

TrainStepRecord make_step_record(int64_t number, double seconds = 0.1, double data = 0.01, double memory = 1e9) {
  return {.epoch = 1,
          .step = number,
          .samples = 8,
          .loss = static_cast<double>(number),
          .seconds_data = data,
          .seconds_gradients = seconds - data,
          .memory = memory};
}

// Notices of `count` steps.
std::vector<std::string> observe_steps(PerformanceMonitor& monitor, int64_t count, const auto& make) {
  std::vector<std::string> notices;
  for (int64_t i = 1; i <= count; ++i) {
    for (std::string& notice : monitor.observe(make(i))) notices.push_back(std::move(notice));
  }
  return notices;
}

}  // namespace

TEST_CASE("the monitor knows the mean and deviation of its window") {
  PerformanceMonitor monitor({.window = 4});
  CHECK(observe_steps(monitor, 10, [](int64_t i) { return make_step_record(i); }).empty());
  CHECK(monitor.loss().mean == doctest::Approx(8.5));  // of steps 7 to 10
  CHECK(monitor.loss().deviation == doctest::Approx(1.29099).epsilon(1e-4));
  CHECK(monitor.step_seconds().count == 4);
  CHECK(monitor.step_seconds().mean == doctest::Approx(0.1));
  EXPECT_ERROR(invalid_input, PerformanceMonitor({.window = 1}), "not 1");
  EXPECT_ERROR(invalid_input, PerformanceMonitor({.target_step_seconds = 0.0}), "above 0");
}

TEST_CASE("steps that take 1.2 times the target are reported once, and again after they were fast") {
  PerformanceMonitor monitor({.window = 10, .target_step_seconds = 0.1});
  CHECK(observe_steps(monitor, 50, [](int64_t i) { return make_step_record(i, 0.119); }).empty());
  const auto notices = observe_steps(monitor, 50, [](int64_t i) { return make_step_record(i, 0.13); });
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("takes 130") != std::string::npos);
  CHECK(notices[0].find("target of 100") != std::string::npos);
  CHECK(observe_steps(monitor, 10, [](int64_t i) { return make_step_record(i, 0.1); }).empty());
  CHECK(observe_steps(monitor, 10, [](int64_t i) { return make_step_record(i, 0.2); }).size() == 1);
}

TEST_CASE("waiting for data is reported") {
  PerformanceMonitor monitor({.window = 10});
  CHECK(observe_steps(monitor, 30, [](int64_t i) { return make_step_record(i, 0.1, 0.049); }).empty());
  const auto notices = observe_steps(monitor, 30, [](int64_t i) { return make_step_record(i, 0.1, 0.08); });
  REQUIRE(notices.size() == 1);
  CHECK(notices[0].find("80.00 %") != std::string::npos);
}

TEST_CASE("memory that grows from window to window is reported, noise and one jump are not") {
  const auto notice = [](const auto& memory) {
    PerformanceMonitor monitor({.window = 10});
    return observe_steps(monitor, 200, [&](int64_t i) { return make_step_record(i, 0.1, 0, memory(i)); });
  };
  CHECK(notice([](int64_t i) { return 1e9 + 2e6 * static_cast<double>(i); }).size() == 1);
  CHECK(notice([](int64_t i) { return 1e9 + 1e8 * static_cast<double>(i % 3); }).empty());
  CHECK(notice([](int64_t i) { return i > 100 ? 2e9 : 1e9; }).empty());
  CHECK(notice([](int64_t i) { return 1e9 + 1e3 * static_cast<double>(i); }).empty());
}

TEST_CASE("a course of steps stays short and keeps its means") {
  StepHistory history;
  double sum = 0;
  const int64_t steps = 10'000;
  for (int64_t i = 1; i <= steps; ++i) {
    add_step(history, make_step_record(i));
    sum += static_cast<double>(i);
  }
  CHECK(history.points.size() < kMostHistoryPoints);
  CHECK(history.stride == 8);
  CHECK(history.points.back().step + history.summed == steps);
  double of_points = 0;
  for (const TrainStepRecord& point : history.points) of_points += point.loss * static_cast<double>(history.stride);
  of_points += history.sum.loss * static_cast<double>(history.summed);
  CHECK(of_points == doctest::Approx(sum));
  CHECK(history.points[0].step == 8);
  CHECK(history.points[0].loss == doctest::Approx(4.5));
}

TEST_CASE("hooks change the gradients that their pattern names, until they are removed") {
  GradientHooks hooks;
  const std::vector<std::string> names = {"stem.weight", "head.weight", "head.bias"};
  const auto apply = [&] {
    std::vector<at::Tensor> gradients = {at::ones({2}), at::ones({2}), {}};
    hooks.apply(names, gradients);
    return gradients;
  };
  std::vector<std::string> seen;
  GradientHookHandle doubling = hooks.add("head.*", [&](const std::string& name, const at::Tensor& gradient) {
    seen.push_back(name);
    return gradient.mul(2);
  });
  hooks.add("*", [&](const std::string&, const at::Tensor& gradient) { return gradient.add(1); });
  std::vector<at::Tensor> changed = apply();
  CHECK(changed[0][0].item().toDouble() == 2);
  CHECK(changed[1][0].item().toDouble() == 3);
  CHECK_FALSE(changed[2].defined());
  CHECK(seen == std::vector<std::string>{"head.weight"});
  doubling.remove();
  CHECK(apply()[1][0].item().toDouble() == 2);
  hooks.add("stem.*", [](const std::string&, const at::Tensor&) { return at::ones({3}); });
  EXPECT_ERROR(invalid_input, apply(), "'stem.weight'", "[3]");
}

TEST_CASE("metrics that fit are chosen, and measure") {
  const at::Tensor scores = at::tensor({0.1, 0.9, 0.8, 0.2, 0.3, 0.7}).reshape({3, 2});
  const at::Tensor classes = at::tensor({1, 0, 0}, at::TensorOptions().dtype(at::kLong));
  const auto accuracy = choose_metrics({}, scores, classes);
  REQUIRE(accuracy.size() == 1);
  CHECK(accuracy[0].name == "accuracy");
  CHECK(accuracy[0].measure({scores}, classes) == doctest::Approx(2.0 / 3));
  const at::Tensor soft = at::tensor({0.2, 0.8, 0.6, 0.4, 0.9, 0.1}).reshape({3, 2});
  CHECK(choose_metrics({}, scores, soft).at(0).measure({scores}, soft) == doctest::Approx(2.0 / 3));
  const auto error = choose_metrics({.kind = LossKind::mse}, scores, at::full({3, 2}, 0.5));
  REQUIRE(error.size() == 1);
  CHECK(error[0].measure({scores}, at::full({3, 2}, 0.5)) == doctest::Approx((0.4 + 0.4 + 0.3 + 0.3 + 0.2 + 0.2) / 6));
  CHECK(choose_metrics({.kind = LossKind::mse}, scores, at::full({3}, 0.5)).empty());
  const at::Tensor ignored = at::tensor({1, -100, 1}, at::TensorOptions().dtype(at::kLong));
  CHECK(accuracy[0].measure({scores}, ignored) == 1);
  CHECK(accuracy[0].weigh(ignored) == 2);
  CHECK(choose_metrics({}, scores, classes.view({3, 1})).at(0).measure({scores}, classes.view({3, 1})) ==
        doctest::Approx(2.0 / 3));
}

TEST_CASE("an output of one number has no classes, and is compared with labels of either form") {
  const at::Tensor logits = at::tensor({-2.0, 3.0, 0.25}).reshape({3, 1});
  const at::Tensor labels = at::tensor({0, 1, 0}, at::TensorOptions().dtype(at::kLong));
  for (const at::Tensor& form : {labels, labels.view({3, 1}), labels.to(at::kFloat)}) {
    const auto of_logits = choose_metrics({.kind = LossKind::bce_logits}, logits, form);
    REQUIRE(of_logits.size() == 1);
    CHECK(of_logits[0].name == "accuracy");
    CHECK(of_logits[0].measure({logits}, form) == doctest::Approx(2.0 / 3));
    const auto of_probabilities = choose_metrics({.kind = LossKind::bce}, logits, form);
    CHECK(of_probabilities.at(0).measure({logits}, form) == 1);
    const auto error = choose_metrics({.kind = LossKind::mse}, logits, form);
    CHECK(error.at(0).name == "mean_absolute_error");
    CHECK(error.at(0).measure({logits}, form) == doctest::Approx((2 + 2 + 0.25) / 3));
  }
  CHECK(choose_metrics({.kind = LossKind::output}, logits, labels).empty());
}

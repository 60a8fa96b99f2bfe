// Each way to choose a range, on data for which it is made: held-out values lose least by it.
#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "lissome/compress.h"
#include "tests/expect_error.h"

namespace lissome {
namespace {

constexpr RangeMethod kMethods[] = {RangeMethod::minimum_maximum, RangeMethod::average, RangeMethod::percentile,
                                    RangeMethod::entropy, RangeMethod::mean_squared_error};

ActivationRange observe(const std::vector<at::Tensor>& batches, RangeMethod method) {
  Program program;
  const ValueId x = program.add_input("x", {ValueKind::tensor, Dtype::f32, false, {}});
  program.outputs.push_back({x, "x"});
  CalibrationBatches calls;
  for (const at::Tensor& batch : batches) calls.push_back({batch});
  return observe_ranges(program, {x}, calls, method).at(0);
}

double find_error(const at::Tensor& values, const ActivationRange& range) {
  const double scale = range.scale();
  const at::Tensor levels = values.to(at::kDouble).div(scale).add(static_cast<double>(range.zero_point()));
  const at::Tensor kept = levels.round().clamp(0, 255).sub(static_cast<double>(range.zero_point())).mul(scale);
  return kept.sub(values.to(at::kDouble)).pow(2).mean().item().toDouble();
}

// The method that loses least on `held_out`.
RangeMethod find_winner(const std::vector<at::Tensor>& batches, const at::Tensor& held_out) {
  return *std::min_element(std::begin(kMethods), std::end(kMethods), [&](RangeMethod a, RangeMethod b) {
    return find_error(held_out, observe(batches, a)) < find_error(held_out, observe(batches, b));
  });
}

std::vector<at::Tensor> make_batches(const std::function<at::Tensor()>& make) {
  std::vector<at::Tensor> batches;
  for (int i = 0; i < 16; ++i) batches.push_back(make());
  return batches;
}

at::Tensor make_laplace(int64_t count) {
  const at::Tensor uniform = at::rand({count}).sub(0.5);
  return uniform.sign().mul(uniform.abs().mul(-2).add(1).clamp_min(1e-7).log().neg());
}

TEST_CASE("values that fill their range keep all of it") {
  const auto make = [] { return at::rand({20'000}).mul(2).sub(1); };
  CHECK(find_winner(make_batches(make), make()) == RangeMethod::minimum_maximum);
}

TEST_CASE("one bad batch of many is averaged away") {
  std::vector<at::Tensor> batches = make_batches([] { return at::randn({20'000}); });
  batches[3].narrow(0, 0, 400).mul_(6);
  CHECK(find_winner(batches, at::randn({20'000})) == RangeMethod::average);
}

TEST_CASE("outliers in all batches, too few to matter and too far for the squared error, are cut by share") {
  const auto make = [] {
    at::Tensor values = at::randn({20'000});
    values.narrow(0, 0, 1).fill_(60), values.narrow(0, 1, 1).fill_(-60);
    return values;
  };
  CHECK(find_winner(make_batches(make), at::randn({20'000})) == RangeMethod::percentile);
}

TEST_CASE("long tails are cut where the squared error is least") {
  const auto make = [] { return make_laplace(100'000); };
  CHECK(find_winner(make_batches(make), make()) == RangeMethod::mean_squared_error);
}

TEST_CASE("entropy keeps what many values say, where one of a thousand lies far away") {
  const auto make = [] {
    at::Tensor values = at::randn({20'000});
    values.narrow(0, 0, 20).copy_(at::rand({20}).mul(200).sub(100));
    return values;
  };
  CHECK(find_winner(make_batches(make), at::randn({20'000})) == RangeMethod::entropy);
}

TEST_CASE("entropy takes the whole range of few values that have no tails, zeros among them") {
  // With 16 values a bin the random differences of bins would speak for the narrowest range.
  for (const bool positive : {false, true}) {
    CAPTURE(positive);
    const auto make = [&] {
      const at::Tensor values = at::rand({512}).mul(2).sub(1);
      return positive ? values.clamp_min(0) : values;
    };
    const ActivationRange range = observe(make_batches(make), RangeMethod::entropy);
    CHECK(range.high > 0.9);
    CHECK((positive ? range.low == 0 : range.low < -0.9));
  }
}

TEST_CASE("what is clipped below counts as what is clipped above") {
  at::Tensor values = at::rand({100'000}).add(1);
  values.narrow(0, 0, 10).fill_(100);
  const double above = observe({values}, RangeMethod::percentile).clipped;
  CHECK(above > 0);
  CHECK(observe({values.neg()}, RangeMethod::percentile).clipped == doctest::Approx(above));
}

TEST_CASE("the zero point is the nearest number") {
  CHECK(ActivationRange{.low = -2.7, .high = 252.3}.zero_point() == 3);
  CHECK(ActivationRange{.low = -2.3, .high = 252.7}.zero_point() == 2);
  CHECK(ActivationRange{.low = -255, .high = 0}.zero_point() == 255);
}

TEST_CASE("zeros, which every range holds, do not make the other values rare") {
  const at::Tensor values = at::cat({at::rand({1000}).add(1), at::zeros({999'000})});
  const ActivationRange range = observe({values}, RangeMethod::percentile);
  CHECK(range.high > 1.99);
  CHECK(range.clipped == 0);
}

TEST_CASE("entropy does not take the chance of a few values for what they say") {
  for (int i = 0; i < 8; ++i) CHECK(observe({at::rand({1024}).mul(2).sub(1)}, RangeMethod::entropy).high > 0.9);
}

// Narrow ranges have few bins a level, and so fewer differences by chance: with 1,000 values of a long tail they would
// win at about half of the whole range.
TEST_CASE("entropy takes the chance of few values with a long tail for chance") {
  double share = 0;
  constexpr int kDraws = 16;
  for (int i = 0; i < kDraws; ++i) {
    const at::Tensor values = at::randn({1000}).exp();
    share += observe({values}, RangeMethod::entropy).high / values.max().item().toDouble();
  }
  CHECK(share / kDraws > 0.85);
}

TEST_CASE("a range says what it clips and how far its outliers reach, zeros apart") {
  at::Tensor values = at::rand({100'000}).add(1);  // 1 to 2
  values.narrow(0, 0, 10).fill_(100);              // 1 of 10,000
  const at::Tensor sparse = at::cat({values, at::zeros({900'000})});
  for (const at::Tensor& given : {values, sparse}) {
    const ActivationRange all = observe({given}, RangeMethod::minimum_maximum);
    CHECK(all.clipped == 0);
    CHECK(all.reach == doctest::Approx(50).epsilon(0.05));
    const ActivationRange cut = observe({given}, RangeMethod::percentile);
    CHECK(cut.high < 3);
    CHECK(cut.clipped == doctest::Approx(1e-4).epsilon(0.01));
    CHECK(cut.reach == all.reach);
  }
}

TEST_CASE("ranges grow with the values, close to the end of f32 too") {
  const at::Tensor values = at::randn({4096});
  for (const RangeMethod method : kMethods) {
    const ActivationRange range = observe({values}, method);
    for (const double factor : {0x1p-100, 0x1p60, 0x1p100, 0x1p124}) {
      CAPTURE(factor);
      const ActivationRange scaled = observe({values.mul(factor)}, method);
      CHECK(scaled.low == doctest::Approx(range.low * factor));
      CHECK(scaled.high == doctest::Approx(range.high * factor));
    }
  }
}

TEST_CASE("values that differ by nothing, or beyond f32, have no scale") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const RangeMethod method : kMethods) {
    CHECK_FALSE(observe({at::zeros({100})}, method).has_scale());
    CHECK_FALSE(observe({at::zeros({0})}, method).has_scale());
    for (const float odd : {infinity, -infinity, nan}) {
      at::Tensor values = at::randn({100});
      values.narrow(0, 50, 1).fill_(odd);
      CHECK_FALSE(observe({at::randn({100}), values, at::randn({100})}, method).has_scale());
    }
    CHECK(observe({at::full({100}, 3.0)}, method).has_scale());  // from 0 to 3
  }
}

TEST_CASE("observers are known by name") {
  const std::map<std::string, RangeMethod> names = {{"minmax", RangeMethod::minimum_maximum},
                                                    {"average", RangeMethod::average},
                                                    {"percentile", RangeMethod::percentile},
                                                    {"entropy", RangeMethod::entropy},
                                                    {"mse", RangeMethod::mean_squared_error}};
  for (const auto& [name, method] : names) CHECK(parse_range_method(name) == method);
  EXPECT_ERROR(usage, parse_range_method("min"), "minmax, average, percentile, entropy or mse, not 'min'");
  CHECK(parse_quantize_kind("static") == QuantizeKind::fixed);
  CHECK(parse_quantize_kind("dynamic") == QuantizeKind::dynamic);
  CHECK(parse_quantize_kind("weight") == QuantizeKind::weight);
  EXPECT_ERROR(usage, parse_quantize_kind(""), "static, dynamic, weight or qat, not ''");
}

}  // namespace
}  // namespace lissome

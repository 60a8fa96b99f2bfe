#include "lissome/compress/group_rounding.h"

#include <ATen/Context.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <doctest/doctest.h>

#include <cmath>

namespace lissome {
namespace {

double find_loss(const GroupWeight& rounded, const at::Tensor& weight, const at::Tensor& rows) {
  return at::matmul(rows, restore(rounded).sub(weight).t()).norm().item().toDouble();
}

// Inputs of few directions, so that columns can make up for each other.
at::Tensor make_rows(const at::Tensor& directions, int64_t count) {
  const at::Tensor own = at::randn({count, directions.size(1)}).mul(0.1);
  return at::matmul(at::randn({count, directions.size(0)}), directions).add(own);
}

// AdaRound (Nagel et al. 2020, arXiv 2004.10568): whether each number is rounded up or down is found by gradient
// descent on the same error. It is here alone: it takes a hundred times as long as rounding in order, and loses more.
GroupWeight round_adaptively(const at::Tensor& weight, const at::Tensor& products, int bits) {
  constexpr int kSteps = 1500, kWarmup = 300;  // no pull towards 0 and 1 at first
  constexpr double kRate = 0.02, kPull = 0.01, kFirstPower = 20, kLastPower = 2;
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999;  // of Adam
  const GroupWeight nearest = round_to_nearest(weight, products.diagonal(), bits);
  const at::Tensor scale = nearest.scales.repeat_interleave(weight.size(1) / nearest.scales.size(1), 1);
  const double most = bits == 4 ? 7 : 127;
  const at::Tensor exact = weight.div(scale).clamp(-most - 1, most), low = exact.floor().clamp_max(most - 1);
  // The share of rounding up is a sigmoid that reaches beyond 0 and 1 by a tenth, so that it can arrive there.
  at::Tensor variable = exact.sub(low).add(0.1).div(1.2).clamp(1e-3, 1 - 1e-3).logit();
  at::Tensor mean = at::zeros_like(weight), square = at::zeros_like(weight);
  // Per output, so that the rate means the same everywhere.
  const at::Tensor norm = at::matmul(weight, products).mul(weight).sum(1, true).clamp_min(1e-30);
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor sigmoid = variable.sigmoid(), open = sigmoid.mul(1.2).sub(0.1), share = open.clamp(0, 1);
    const at::Tensor lost = low.add(share).mul(scale).sub(weight);
    at::Tensor gradient = at::matmul(lost, products).mul(scale).div(norm).mul(weight.size(1));
    if (step >= kWarmup) {
      const double done = static_cast<double>(step - kWarmup) / (kSteps - kWarmup);
      const double power = kLastPower + (kFirstPower - kLastPower) * (1 - done);
      const at::Tensor side = share.mul(2).sub(1);  // of 1 - |side|^power
      gradient = gradient.sub(side.abs().pow(power - 1).mul(side.sign()).mul(2 * power * kPull));
    }
    gradient = gradient.mul(sigmoid.mul(sigmoid.neg().add(1)).mul(1.2)).mul(open.eq(share));
    mean.mul_(kBeta1).add_(gradient, 1 - kBeta1);
    square.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
    const at::Tensor size = square.div(1 - std::pow(kBeta2, step + 1)).sqrt().add(1e-8);
    variable.sub_(mean.div(1 - std::pow(kBeta1, step + 1)).div(size).mul(kRate));
  }
  return {low.add(variable.sigmoid().mul(1.2).sub(0.1).ge(0.5)), nearest.scales};
}

TEST_CASE("numbers lie in the range of their bits, and scales in bf16") {
  for (const int bits : {4, 8}) {
    const at::Tensor weight = at::randn({24, 256}), rows = at::randn({1000, 256});
    for (const GroupWeight& rounded :
         {round_to_nearest(weight, {}, bits), round_to_nearest(weight, at::rand({256}), bits),
          round_in_order(weight, at::matmul(rows.t(), rows), bits)}) {
      CHECK(rounded.numbers.equal(rounded.numbers.round()));
      CHECK(rounded.numbers.min().item().toDouble() >= (bits == 4 ? -8 : -128));
      CHECK(rounded.numbers.max().item().toDouble() <= (bits == 4 ? 7 : 127));
      CHECK(rounded.scales.sizes().vec() == std::vector<int64_t>{24, bits == 4 ? 8 : 2});
      CHECK(rounded.scales.equal(rounded.scales.to(at::kBFloat16).to(at::kFloat)));
      CHECK(restore(rounded).sub(weight).norm().item().toDouble() <
            (bits == 4 ? 0.2 : 0.01) * weight.norm().item().toDouble());
    }
  }
}

TEST_CASE("in order loses much less than nearest where inputs move together, on other rows too") {
  at::manual_seed(5);
  const at::Tensor directions = at::randn({40, 256}), weight = at::randn({64, 256});
  const at::Tensor rows = make_rows(directions, 4096), others = make_rows(directions, 512);
  const at::Tensor products = at::matmul(rows.t(), rows);
  for (const int bits : {4, 8}) {
    CAPTURE(bits);
    const double nearest = find_loss(round_to_nearest(weight, products.diagonal(), bits), weight, others);
    const double in_order = find_loss(round_in_order(weight, products, bits), weight, others);
    CHECK(in_order < 0.6 * nearest);
  }
}

TEST_CASE("in order loses less than rounding that is learned") {
  at::manual_seed(6);
  const at::Tensor directions = at::randn({20, 128}), weight = at::randn({32, 128});
  const at::Tensor rows = make_rows(directions, 2048), others = make_rows(directions, 512);
  const at::Tensor products = at::matmul(rows.t(), rows);
  const double nearest = find_loss(round_to_nearest(weight, products.diagonal(), 4), weight, others);
  const double learned = find_loss(round_adaptively(weight, products, 4), weight, others);
  CHECK(learned < 0.7 * nearest);
  CHECK(find_loss(round_in_order(weight, products, 4), weight, others) < 0.85 * learned);
}

TEST_CASE("inputs that are always zero, and none that vary, can be rounded in order") {
  const at::Tensor weight = at::randn({8, 64});
  at::Tensor rows = at::randn({200, 64});
  rows.narrow(1, 10, 20).zero_();
  for (const at::Tensor& given : {rows, rows.mul(0)}) {
    const GroupWeight rounded = round_in_order(weight, at::matmul(given.t(), given), 4);
    CHECK(rounded.numbers.isfinite().all().item().toBool());
    CHECK(restore(rounded).sub(weight).narrow(1, 10, 20).abs().max().item().toDouble() <
          1.5);  // clipped to 0.6 at least
  }
  const GroupWeight none = round_in_order(at::zeros({8, 64}), at::matmul(rows.t(), rows), 4);
  CHECK(restore(none).count_nonzero().item().toLong() == 0);
}

// With the scale for 128 neighbours that takes the largest to the largest number of the format.
at::Tensor round_to_fp8(const at::Tensor& weight, at::ScalarType format, double largest) {
  const at::Tensor groups = weight.reshape({-1, 128});
  const at::Tensor scale = groups.abs().amax({1}, true).clamp_min(1e-30).div(largest);
  return groups.div(scale).to(format).to(at::kFloat).mul(scale).reshape(weight.sizes());
}

// Normal weights, and their cubes, whose largest are eight times as far out. FP8 loses less only where single weights
// are dozens of times as large as their neighbours.
TEST_CASE("FP8 with the same scales loses more than integers of 8 bits") {
  const at::Tensor normal = at::randn({16, 512});
  for (const int power : {1, 3}) {
    const at::Tensor weight = normal.pow(power);
    const auto find_error = [&](const at::Tensor& rounded) {
      return rounded.sub(weight).norm().item().toDouble() / weight.norm().item().toDouble();
    };
    const double integers = find_error(restore(round_to_nearest(weight, {}, 8)));
    const double most = power == 1 ? 0.3 : 0.9;
    CHECK(integers < most * find_error(round_to_fp8(weight, at::kFloat8_e4m3fn, 448)));
    CHECK(integers < most * find_error(round_to_fp8(weight, at::kFloat8_e5m2, 57344)));
  }
}

}  // namespace
}  // namespace lissome

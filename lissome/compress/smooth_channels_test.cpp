#include "lissome/compress/smooth_channels.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/logspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lissome/compress/rewrite_int8.h"
#include "lissome/pass.h"
#include "tests/program_helpers.h"

namespace lissome {
namespace {

using Weights = std::vector<std::pair<std::string, at::Tensor>>;

// As a norm of a trained transformer has them: two channels of 32 are 60 and 25 times as large as the others.
at::Tensor make_outliers() {
  at::Tensor weight = at::ones({32});
  weight[3] = 60, weight[17] = -25;
  return weight;
}

// The same rows to fit and to judge a strength by: what these small samples say must not hang on a single row.
CalibrationBatches make_batches() {
  const at::Tensor rows = at::randn({4, 64, 32});
  return {{rows}, {rows.clone()}};
}

QuantizeOptions make_options(bool dynamic) {
  QuantizeOptions options;
  options.dynamic_linears = dynamic;
  return options;
}

double largest_difference(const at::Tensor& seen, const at::Tensor& wanted) {
  return seen.sub(wanted).abs().max().item().toDouble() / wanted.abs().max().item().toDouble();
}

struct Smoothed {
  Program program;
  std::map<std::string, Smoothing> layers;
};

// Smooths, and checks what always holds: the program is sound and gives the same.
Smoothed smooth(const Program& program, bool dynamic = false, const CalibrationBatches& batches = make_batches()) {
  const SmoothedChannels channels =
      smooth_channels(program, find_layers(program, make_options(dynamic)), batches, make_options(dynamic));
  const Smoothed smoothed{divide_channels(program, channels.divisions), channels.layers};
  verify_program(smoothed.program, Stage::optimized);
  const at::Tensor x = at::randn({1, 7, 32});
  CHECK(largest_difference(interpret_one(smoothed.program, x), interpret_one(program, x)) < 1e-5);
  for (const auto& [name, smoothing] : smoothed.layers) {
    CHECK(smoothing.strength >= 0.3);
    CHECK(smoothing.strength <= 0.9);
    CHECK(smoothing.signal_to_noise_after > smoothing.signal_to_noise_before);
  }
  return smoothed;
}

constexpr const char* kLinearBehindNorm = R"(
    input %x: f32[batch, rows, 32]
    parameter @n: f32[32]
    parameter @m: f32[32]
    parameter @a: f32[48, 32]
    parameter @b: f32[48]
    %1: f32[batch, rows, 32] = aten::layer_norm(%x, [32], @n, @m, 1e-05)
    %2: f32[batch, rows, 48] = aten::linear(%1, @a, @b)
    return %2
  )";

Program make_linear_behind_norm(const at::Tensor& norm_weight, const at::Tensor& columns = at::randn({48, 32})) {
  return parse_program(kLinearBehindNorm,
                       {{"n", norm_weight}, {"m", at::zeros({32})}, {"a", columns}, {"b", at::randn({48})}});
}

Program make_linear(const at::Tensor& columns) {
  return parse_program(R"(
    input %x: f32[batch, rows, 32]
    parameter @a: f32[48, 32]
    %1: f32[batch, rows, 48] = aten::linear(%x, @a)
    return %1
  )",
                       {{"a", columns}});
}

TEST_CASE("channels far larger than others are made alike in the norm before a linear") {
  const Program program = make_linear_behind_norm(make_outliers());
  for (const bool dynamic : {false, true}) {
    const Smoothed smoothed = smooth(program, dynamic);
    REQUIRE(smoothed.layers.size() == 1);
    const Smoothing& smoothing = smoothed.layers.begin()->second;
    CHECK(smoothing.place == "the norm before it");
    // A fourth of the noise power is the least.
    CHECK(smoothing.signal_to_noise_after > smoothing.signal_to_noise_before + 6);
    CHECK(smoothed.program.nodes.size() == program.nodes.size());
    CHECK(smoothed.program.weights.size() == program.weights.size());
  }
}

TEST_CASE("the whole quantization errs less, on rows that did not calibrate it") {
  // Small columns for the large channels, as training leaves them: what the others say decides the output.
  at::Tensor columns = at::randn({48, 32});
  columns.select(1, 3).mul_(1.0 / 60), columns.select(1, 17).mul_(1.0 / 25);
  const Program program = make_linear_behind_norm(make_outliers(), columns);
  const at::Tensor x = at::randn({4, 50, 32});
  const Quantized quantized = quantize_int8(program, {{at::randn({4, 256, 32})}, {at::randn({4, 256, 32})}}, {}, 0);
  REQUIRE(quantized.layers.size() == 1);
  CHECK(quantized.layers[0].smoothing.strength > 0);
  CHECK(quantized.layers[0].signal_to_noise > quantized.layers[0].smoothing.signal_to_noise_before + 10);
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(program, x)) < 0.03);
  CHECK(std::pow(10, -quantized.layers[0].smoothing.signal_to_noise_before / 20) > 0.09);
}

TEST_CASE("channels that are alike are left alone") {
  const Program program = make_linear(at::randn({48, 1}).mul(at::randn({32}).sign()));
  // Every channel takes the same values, each in another order.
  const at::Tensor numbers = at::randn({64});
  std::vector<at::Tensor> channels;
  for (int64_t i = 0; i < 32; ++i) channels.push_back(numbers.roll(i));
  const CalibrationBatches batches = {{at::stack(channels, 1).unsqueeze(0)}, {at::stack(channels, 1).unsqueeze(0)}};
  for (const bool dynamic : {false, true}) {
    const Smoothed smoothed = smooth(program, dynamic, batches);
    CHECK(smoothed.layers.empty());
    CHECK(same_program(smoothed.program, program));
  }
}

// Every factor is one, which leaves as much noise: in a norm, which costs nothing, only a gain counts all the same.
TEST_CASE("channels that are alike behind a norm are left alone") {
  const Program program = make_linear_behind_norm(at::ones({32}), at::randn({48, 1}).mul(at::randn({32}).sign()));
  const at::Tensor numbers = at::randn({32});
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < 32; ++i) rows.push_back(numbers.roll(i));
  const at::Tensor alike = at::stack(rows).unsqueeze(0);
  CHECK(smooth(program, false, {{alike}, {alike.clone()}}).layers.empty());
}

// Xiao et al. 2022, formula 4, around a geometric mean of one.
TEST_CASE("factors weigh the largest inputs and the largest weights of a channel by the strength") {
  const Program program = make_linear(at::randn({48, 32}).mul(at::logspace(0, 0.5, 32)));
  const CalibrationBatches batches = {{at::randn({4, 64, 32}).mul(make_outliers())}};
  const QuantizeOptions options = make_options(false);
  const SmoothedChannels channels = smooth_channels(program, find_layers(program, options), batches, options);
  REQUIRE(channels.layers.size() == 1);
  REQUIRE(channels.divisions.size() == 1);
  const double strength = channels.layers.begin()->second.strength;
  const at::Tensor inputs = batches[0][0].toTensor().abs().amax({0, 1}).to(at::kDouble);
  const at::Tensor weights = program.weights[0].tensor.abs().amax({0}).to(at::kDouble);
  const at::Tensor factors = inputs.pow(strength).div(weights.pow(1 - strength));
  CHECK(largest_difference(channels.divisions[0].factors, factors.div(factors.log().mean().exp())) < 1e-6);
}

TEST_CASE("linears that read one value share its factors") {
  const at::Tensor a = at::randn({16, 32}), b = at::randn({24, 32});
  const Program program = parse_program(R"(
    input %x: f32[batch, rows, 32]
    parameter @n: f32[32]
    parameter @a: f32[16, 32]
    parameter @b: f32[24, 32]
    %1: f32[batch, rows, 32] = aten::rms_norm(%x, [32], @n, 1e-05)
    %q: f32[batch, rows, 16] = aten::linear(%1, @a)
    %k: f32[batch, rows, 16] = aten::linear(%1, @a)
    %v: f32[batch, rows, 24] = aten::linear(%1, @b)
    %2: f32[batch, rows, 56] = aten::cat([%q, %k, %v], 2)
    return %2
  )",
                                        {{"n", make_outliers()}, {"a", a}, {"b", b}});
  const Smoothed smoothed = smooth(program);
  REQUIRE(smoothed.layers.size() == 3);
  for (const auto& [name, smoothing] : smoothed.layers) {
    CHECK(smoothing.strength == smoothed.layers.at("q").strength);
    CHECK(smoothing.place == "the norm before it");
  }
  std::vector<at::Tensor> ratios;
  for (const Node& node : smoothed.program.nodes) {
    if (!node.is("aten::linear")) continue;
    const at::Tensor& weight = smoothed.program.find_weight(node.argument("weight").value())->tensor;
    ratios.push_back(weight.div(weight.size(0) == 16 ? a : b).mean({0}));
  }
  REQUIRE(ratios.size() == 3);
  for (const at::Tensor& ratio : ratios) CHECK(largest_difference(ratio, ratios[0]) < 1e-5);
  CHECK(ratios[0][3].item().toDouble() > 5 * ratios[0][0].item().toDouble());
}

TEST_CASE("where something else reads the value too, a product divides what the linear reads") {
  const Program program = parse_program(R"(
    input %x: f32[batch, rows, 32]
    parameter @n: f32[32]
    parameter @a: f32[32, 32]
    %1: f32[batch, rows, 32] = aten::layer_norm(%x, [32], @n, none, 1e-05)
    %2: f32[batch, rows, 32] = aten::linear(%1, @a)
    %3: f32[batch, rows, 32] = aten::add.Tensor(%2, %1)
    return %3
  )",
                                        {{"n", make_outliers()}, {"a", at::randn({32, 32})}});
  const Smoothed smoothed = smooth(program);
  REQUIRE(smoothed.layers.size() == 1);
  CHECK(smoothed.layers.begin()->second.place == "a product of its own");
  CHECK(count_ops(smoothed.program, "aten::mul.Tensor") == 1);
  CHECK(smoothed.program.find_weight("n")->tensor.equal(program.find_weight("n")->tensor));
  const Node& sum = smoothed.program.nodes.back();
  CHECK(sum.argument("other").value() == smoothed.program.nodes.front().result());
}

TEST_CASE("a value that the program returns, or that is its input, is not changed") {
  const Program program = parse_program(R"(
    input %x: f32[batch, rows, 32]
    parameter @n: f32[32]
    parameter @a: f32[32, 32]
    %1: f32[batch, rows, 32] = aten::mul.Tensor(%x, @n)
    %2: f32[batch, rows, 32] = aten::layer_norm(%x, [32], @n, none, 1e-05)
    %3: f32[batch, rows, 32] = aten::linear(%1, @a)
    %4: f32[batch, rows, 32] = aten::linear(%2, @a)
    return %4, %3, %2
  )",
                                        {{"n", make_outliers()}, {"a", at::randn({32, 32})}});
  const Smoothed smoothed = smooth(program);
  REQUIRE(smoothed.layers.size() == 2);
  for (const auto& [name, smoothing] : smoothed.layers) CHECK(smoothing.place == "a product of its own");
  const at::Tensor x = at::randn({1, 5, 32});
  const auto seen = interpret(smoothed.program, {x}), wanted = interpret(program, {x});
  CHECK(largest_difference(seen[1].toTensor(), wanted[1].toTensor()) < 1e-5);
  CHECK(seen[2].toTensor().equal(wanted[2].toTensor()));
}

// A chain in which each linear divides what it makes and multiplies what it reads; one activation lets factors through.
TEST_CASE("rows of a linear divide where nothing but ReLU comes after them") {
  at::Tensor rows = at::randn({32, 32});
  rows.select(0, 5).mul_(80), rows.select(0, 9).mul_(40);
  const auto make = [&](const std::string& activation) {
    return parse_program(R"(
    input %x: f32[batch, rows, 32]
    parameter @n: f32[32]
    parameter @a: f32[32, 32]
    parameter @b: f32[32]
    parameter @c: f32[8, 32]
    %1: f32[batch, rows, 32] = aten::layer_norm(%x, [32], @n, none, 1e-05)
    %2: f32[batch, rows, 32] = lissome::linear_act(%1, @a, @b, ")" +
                             activation + R"(")
    %3: f32[batch, rows, 8] = aten::linear(%2, @c)
    return %3
  )",
                         {{"n", make_outliers()}, {"a", rows}, {"b", at::randn({32})}, {"c", at::randn({8, 32})}});
  };
  const Smoothed relu = smooth(make("relu"));
  REQUIRE(relu.layers.size() == 2);
  CHECK(relu.layers.at("2").place == "the norm before it");
  CHECK(relu.layers.at("3").place == "the linear before it");
  CHECK(count_ops(relu.program, "aten::mul.Tensor") == 0);
  const Smoothed gelu = smooth(make("gelu"));
  REQUIRE(gelu.layers.count("3") == 1);
  CHECK(gelu.layers.at("3").place == "a product of its own");
}

TEST_CASE("tied weights keep their other readers, and are not kept twice") {
  const Program program = parse_program(R"(
    input %x: f32[batch, rows, 32]
    parameter @n: f32[32]
    parameter @a: f32[32, 32]
    %1: f32[batch, rows, 32] = aten::layer_norm(%x, [32], @n, @n, 1e-05)
    %2: f32[batch, rows, 32] = aten::linear(%1, @a)
    %3: f32[batch, rows, 32] = aten::mul.Tensor(%2, @n)
    %4: f32[batch, rows, 32] = aten::layer_norm(%3, [32], @n, none, 1e-05)
    %5: f32[batch, rows, 32] = aten::linear(%4, @a)
    %6: f32[batch, rows, 32] = aten::linear(%5, @a)
    return %6
  )",
                                        {{"n", make_outliers()}, {"a", at::randn({32, 32})}});
  const Smoothed smoothed = smooth(program);
  CHECK(smoothed.layers.at("2").place == "the norm before it");
  CHECK(smoothed.layers.at("5").place == "the norm before it");
  CHECK(smoothed.program.find_weight("n")->tensor.equal(make_outliers()));
  // The last reads what a linear with a tied weight makes.
  if (smoothed.layers.count("6") > 0) CHECK(smoothed.layers.at("6").place == "a product of its own");
}

TEST_CASE("channels that are silent or not finite during calibration change nothing else") {
  at::Tensor silent = make_outliers();
  silent[8] = 0;
  const Program program = make_linear_behind_norm(silent);
  CalibrationBatches quiet = make_batches();
  smooth(program, false, quiet);
  CalibrationBatches broken = make_batches();
  broken[1][0].toTensor()[0][0][4] = std::numeric_limits<double>::quiet_NaN();
  const Smoothed left = smooth(program, false, broken);
  CHECK(left.layers.empty());
  for (const Weight& weight : left.program.weights) CHECK(weight.tensor.isfinite().all().item().toBool());
}

TEST_CASE("layers kept in float on request are left as they are") {
  const Program program = make_linear_behind_norm(make_outliers());
  QuantizeOptions options;
  options.keep_float = {"*"};
  Program with_origin = program;
  for (Node& node : with_origin.nodes) {
    node.origin = std::make_shared<const Origin>(Origin{"net.py:1", "", "net.layer", ""});
  }
  const SmoothedChannels smoothed =
      smooth_channels(with_origin, find_layers(with_origin, options), make_batches(), options);
  CHECK(smoothed.layers.empty());
  CHECK(smoothed.divisions.empty());
}

// What a channel of the first convolution is multiplied by, the depthwise one behind a pooling divides by; the
// mean of `other` is added to the result.
Program make_uneven_net(const std::string& other) {
  const at::Tensor factors = at::logspace(0, 2, 8, 10, at::kFloat).reshape({8, 1, 1, 1});
  return prepare_inference(parse_program(R"(
    input %x: f32[batch, 3, 12, 12]
    parameter @a: f32[8, 3, 3, 3]
    parameter @b: f32[8]
    parameter @c: f32[8, 1, 3, 3]
    parameter @d: f32[4, 4, 1, 1]
    %1: f32[batch, 8, 12, 12] = aten::convolution(%x, @a, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
    %2: f32[batch, 8, 12, 12] = aten::relu(%1)
    %3: f32[batch, 8, 6, 6] = aten::max_pool2d(%2, [2, 2], [2, 2])
    %4: f32[batch, 8, 6, 6] = aten::convolution(%3, @c, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 8)
    %5: f32[batch, 4, 6, 6] = aten::convolution(%4, @d, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 2)
    %6: f32[batch, 1, 1, 1] = aten::mean.dim()" +
                                             other + R"(, [1, 2, 3], true)
    %7: f32[batch, 4, 6, 6] = aten::add.Tensor(%5, %6)
    return %7
  )",
                                         {{"a", at::randn({8, 3, 3, 3}).mul(factors)},
                                          {"b", at::randn({8}).mul(factors.reshape({8}))},
                                          {"c", at::randn({8, 1, 3, 3}).div(factors)},
                                          {"d", at::randn({4, 4, 1, 1})}}));
}

struct Errors {
  double before = 0, after = 0;
  bool divides_pooled = false;
};

// Of int8 as a whole, on other images, without and with what is smoothed.
Errors measure_net(const Program& program) {
  CalibrationBatches batches;
  for (int i = 0; i < 4; ++i) batches.push_back({at::randn({4, 3, 12, 12})});
  const SmoothedChannels channels = smooth_channels(program, find_layers(program, {}), batches, {});
  const Program divided = divide_channels(program, channels.divisions);
  verify_program(divided, Stage::optimized);
  const at::Tensor x = at::randn({16, 3, 12, 12}), wanted = interpret_one(program, x);
  CHECK(largest_difference(interpret_one(divided, x), wanted) < 1e-5);
  const auto find_error = [&](const Program& made) {
    return interpret_one(made, x).sub(wanted).norm().item().toDouble() / wanted.norm().item().toDouble();
  };
  std::vector<Layer> layers = find_layers(program, {});
  for (Layer& layer : layers) {
    const ActivationRange range = observe_ranges(program, {layer.input}, batches, RangeMethod::mean_squared_error)[0];
    layer.range = range;
  }
  return {find_error(rewrite_int8(program, layers, {})), find_error(quantize_int8(program, batches, {}, 0).program),
          std::ranges::any_of(channels.divisions, [&](const ChannelDivision& division) {
            return program.value(division.value).name == "3";
          })};
}

TEST_CASE("a convolution divides its channels for the one behind it, through ReLU and pooling") {
  const Errors errors = measure_net(make_uneven_net("%x"));
  CHECK(errors.divides_pooled);
  CHECK(errors.after < 0.5 * errors.before);
}

TEST_CASE("channels that something else reads too are not divided for convolutions") {
  CHECK_FALSE(measure_net(make_uneven_net("%3")).divides_pooled);
}

}  // namespace
}  // namespace lissome

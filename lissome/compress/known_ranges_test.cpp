// Models that round to 256 numbers by themselves, and what int8 makes of them.
#include <ATen/core/ivalue.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <random>

#include "lissome/compress.h"
#include "lissome/pass.h"
#include "tests/program_helpers.h"

namespace lissome {
namespace {

constexpr const char* kImage = "f32[batch, 8, 8, 8]";

// Draws programs of convolutions, activations, pools, sums and roundings, in which a value may be read several times
// and may be rounded or not. Ranges are so narrow that they clip.
class NetMaker {
 public:
  explicit NetMaker(unsigned seed) : random_(seed) {}

  Program make() {
    values_ = {"x"};
    header_ = std::string("input %x: ") + kImage + "\ninput %given: f32[8, 8, 3, 3]\n";
    for (int i = 0; i < 9; ++i) add_any();
    const std::string last = add_round(values_.back());
    return parse_program(header_ + body_ + "return %" + last + ", %" + draw_value() + "\n", weights_);
  }

 private:
  int draw(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  std::string draw_value() {
    return draw(2) == 0 ? values_.back() : values_[static_cast<size_t>(draw(std::ssize(values_)))];
  }

  std::string add(const std::string& node, const char* type = kImage) {
    const std::string name = "v" + std::to_string(made_++);
    body_ += "%" + name + ": " + type + " = " + node + "\n";
    return name;
  }

  std::string add_round(const std::string& value) {
    const int zero = draw(3) == 0 ? 0 : 60 + draw(100);
    const std::string scale = std::to_string(0.004 + 0.001 * draw(5));
    if (draw(2) == 0)
      return add("aten::fake_quantize_per_tensor_affine(%" + value + ", " + scale + ", " + std::to_string(zero) +
                 ", 0, 255)");
    const std::string settings = scale + ", " + std::to_string(zero - 128) + ", -128, 127, i8)";
    const std::string integers = add("lissome::quantize_per_tensor(%" + value + ", " + settings, "i8[batch, 8, 8, 8]");
    return add("lissome::dequantize_per_tensor(%" + integers + ", " + settings);
  }

  // Its weight has 8 bits, or is an input: then the layer stays in float.
  std::string add_convolution(const std::string& value) {
    std::string weight = "%given";
    if (draw(3) > 0) {
      const std::string name = "w" + std::to_string(made_++);
      weights_.emplace_back(name, at::randint(-127, 128, {8, 8, 3, 3}).mul(0.002));
      header_ += "parameter @" + name + ": f32[8, 8, 3, 3]\n";
      weight = "@" + name;
    }
    return add("aten::convolution(%" + value + ", " + weight + ", none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)");
  }

  void add_any() {
    const std::string value = draw_value();
    switch (draw(5)) {
      case 0: values_.push_back(add_round(value)); break;
      case 1: values_.push_back(add("aten::relu(%" + value + ")")); break;
      case 2: values_.push_back(add("aten::max_pool2d(%" + value + ", [3, 3], [1, 1], [1, 1])")); break;
      case 3: values_.push_back(add("aten::add.Tensor(%" + value + ", %" + draw_value() + ")")); break;
      default: values_.push_back(add_convolution(add_round(value))); break;
    }
  }

  std::mt19937 random_;
  int made_ = 0;
  std::string header_, body_;
  std::vector<std::string> values_;
  std::vector<std::pair<std::string, at::Tensor>> weights_;
};

TEST_CASE("what a model rounds stays rounded for every reader, whether its layers become int8 or not") {
  int quantized_layers = 0, float_layers = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Program original = NetMaker(seed).make();
    const auto prepared = std::make_shared<const Program>(prepare_inference(original));
    const at::Tensor given = at::randn({8, 8, 3, 3}).mul(0.1);
    CalibrationBatches batches;
    for (int i = 0; i < 3; ++i) batches.push_back({at::randn({4, 8, 8, 8}), given});
    const Quantized quantized = Int8Calibration(prepared, batches).quantize(kLeastSignalToNoise);
    verify_program(quantized.program, Stage::compressed);

    for (const QuantizedLayer& layer : quantized.layers) (layer.quantized ? quantized_layers : float_layers) += 1;
    const std::vector<c10::IValue> inputs = {at::randn({8, 8, 8, 8}), given};
    const auto wanted = interpret(original, inputs), seen = interpret(quantized.program, inputs);
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(relative_error(seen[i].toTensor(), wanted[i].toTensor()) < 0.02);
  }
  CHECK(quantized_layers > 40);
  CHECK(float_layers > 20);
}

TEST_CASE("a bias takes off what rounding the weights adds on average") {
  const at::Tensor weight = at::randn({16, 32}), bias = at::randn({16});
  const Program program = prepare_inference(parse_program(R"(
    input %x: f32[batch, 32]
    parameter @w: f32[16, 32]
    parameter @b: f32[16]
    %1: f32[batch, 16] = aten::linear(%x, @w, @b)
    return %1
  )",
                                                          {{"w", weight}, {"b", bias}}));
  CalibrationBatches batches;
  for (int i = 0; i < 8; ++i) batches.push_back({at::randn({64, 32}).mul(0.2).add(1)});
  const Quantized quantized = quantize_int8(program, batches, {}, 0);
  const at::Tensor x = at::randn({4096, 32}).mul(0.2).add(1);
  const at::Tensor error = interpret_one(quantized.program, x).sub(interpret_one(program, x)).mean(0);
  const at::Tensor scale = weight.abs().amax({1}, true).div(127);
  const at::Tensor added = weight.div(scale).round().mul(scale).sub(weight).sum(1);  // inputs are 1 on average
  CHECK(error.norm().item().toDouble() < 0.3 * added.norm().item().toDouble());
}

TEST_CASE("a linear that finds its scales while running reads what was rounded") {
  const Program original = parse_program(R"(
    input %x: f32[batch, 16]
    parameter @w: f32[8, 16]
    %1: f32[batch, 16] = aten::fake_quantize_per_tensor_affine(%x, 0.001, 100, 0, 255)
    %2: f32[batch, 8] = aten::linear(%1, @w)
    return %2
  )",
                                         {{"w", at::randint(-127, 128, {8, 16}).mul(0.01)}});
  const auto prepared = std::make_shared<const Program>(prepare_inference(original));
  QuantizeOptions options;
  options.dynamic_linears = true;
  const Quantized quantized = Int8Calibration(prepared, {{at::randn({8, 16})}}, options).quantize(0);
  REQUIRE(quantized.layers.at(0).quantized);
  const at::Tensor x = at::randn({32, 16});
  CHECK(relative_error(interpret_one(quantized.program, x), interpret_one(original, x)) < 0.02);
}

TEST_CASE("other layers of a model that rounds are smoothed, and their biases are corrected") {
  const at::Tensor sizes = at::randn({32}).mul(2.5).exp();
  const Program original =
      parse_program(R"(
    input %x: f32[batch, 32]
    input %y: f32[batch, 16]
    parameter @a: f32[32, 32]
    parameter @b: f32[8, 16]
    %1: f32[batch, 32] = aten::linear(%x, @a)
    %2: f32[batch, 16] = aten::fake_quantize_per_tensor_affine(%y, 0.02, 128, 0, 255)
    %3: f32[batch, 8] = aten::linear(%2, @b)
    return %1, %3
  )",
                    {{"a", at::randn({32, 32})}, {"b", at::randint(-127, 128, {8, 16}).mul(0.01)}});
  const auto prepared = std::make_shared<const Program>(prepare_inference(original));
  CalibrationBatches batches;
  for (int i = 0; i < 6; ++i) batches.push_back({at::randn({32, 32}).mul(sizes), at::randn({32, 16})});
  const Quantized quantized = Int8Calibration(prepared, batches).quantize(0);
  REQUIRE(quantized.layers.size() == 2);
  CHECK(quantized.layers[0].smoothing.strength > 0);
  CHECK(quantized.layers[1].smoothing.strength == 0);
  CHECK(quantized.layers[1].range.scale() == doctest::Approx(0.02));
}

}  // namespace
}  // namespace lissome

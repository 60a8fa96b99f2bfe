#include "lissome/train/optim/initialize.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>

#include <map>

#include "lissome/base.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

constexpr std::string_view kNet = R"(
%1 = aten::conv2d(%x: f32[2, 3, 8, 8], @stem.weight: f32[64, 3, 5, 5], @stem.bias: f32[64])
%2 = aten::flatten.using_ints(%1, 1)
%3 = aten::linear(%2, @one.weight: f32[200, 1024], @one.bias: f32[200])
%4 = aten::layer_norm(%3, [200], @norm.weight: f32[200], @norm.bias: f32[200])
%5 = aten::relu(%4)
%6 = aten::linear(%5, @two.weight: f32[100, 200], none)
%7 = aten::tanh(%6)
%8 = aten::t(@three.weight: f32[300, 100])
%9 = aten::addmm(@three.bias: f32[300], %7, %8)
%10 = aten::mul(%9, @gain: f32[300])
)";

std::map<std::string, std::string> list_rules(const std::vector<InitializedWeight>& done) {
  std::map<std::string, std::string> rules;
  for (const InitializedWeight& weight : done) rules[weight.name] = weight.rule;
  return rules;
}

// As the text gives no roles, all weights count as parameters here.
Program make_net() {
  Program program = parse_program(kNet);
  for (Weight& weight : program.weights) {
    weight.role = WeightRole::parameter;
    weight.tensor = at::full(weight.tensor.sizes(), 0.5);
  }
  return program;
}

const at::Tensor& tensor_of(const Program& program, std::string_view name) { return program.find_weight(name)->tensor; }
double deviation_of(const Program& program, std::string_view name) {
  return tensor_of(program, name).std().item<double>();
}

}  // namespace

TEST_CASE("smart chooses by what follows") {
  const Program program = make_net();
  const auto rules = list_rules(initialize_weights(program));
  CHECK(rules.at("stem.weight") == "kaiming_normal");
  CHECK(rules.at("one.weight") == "kaiming_normal");  // through the norm
  CHECK(rules.at("two.weight") == "xavier_normal");
  CHECK(rules.at("three.weight") == "xavier_uniform");
  CHECK(rules.at("three.bias") == "zeros");
  CHECK(rules.at("norm.weight") == "ones");
  CHECK(rules.at("norm.bias") == "zeros");
  CHECK(rules.at("gain") == "kept");
  CHECK(deviation_of(program, "stem.weight") == doctest::Approx(std::sqrt(2.0 / (64 * 25))).epsilon(0.05));
  CHECK(deviation_of(program, "one.weight") == doctest::Approx(std::sqrt(2.0 / 200)).epsilon(0.02));
  CHECK(deviation_of(program, "two.weight") == doctest::Approx(5.0 / 3 * std::sqrt(2.0 / 300)).epsilon(0.03));
  CHECK(tensor_of(program, "three.weight").abs().max().item<double>() ==
        doctest::Approx(std::sqrt(6.0 / 400)).epsilon(0.01));
  CHECK(tensor_of(program, "stem.bias").abs().max().item<double>() == 0);
  CHECK(tensor_of(program, "norm.weight").min().item<double>() == 1);
  CHECK(tensor_of(program, "gain").eq(0.5).all().item<bool>());
}

TEST_CASE("the same seed gives the same numbers, another seed others") {
  const Program first = make_net(), second = make_net(), third = make_net();
  initialize_weights(first, {.seed = 7});
  initialize_weights(second, {.seed = 7});
  initialize_weights(third, {.seed = 8});
  CHECK(tensor_of(first, "two.weight").equal(tensor_of(second, "two.weight")));
  CHECK(!tensor_of(first, "two.weight").equal(tensor_of(third, "two.weight")));
}

TEST_CASE("plain initializers keep to their scale") {
  const Program program = make_net();
  const auto fill = [&](Initializer initializer, std::optional<double> scale) -> const at::Tensor& {
    initialize_weights(program, {.initializer = initializer, .scale = scale});
    return tensor_of(program, "one.weight");
  };
  CHECK(fill(Initializer::uniform, {}).abs().max().item<double>() == doctest::Approx(0.05).epsilon(1e-3));
  CHECK(fill(Initializer::normal, 0.5).std().item<double>() == doctest::Approx(0.5).epsilon(0.01));
  const at::Tensor cut = fill(Initializer::truncated_normal, 0.5);
  CHECK(cut.abs().max().item<double>() <= 1);
  CHECK(cut.std().item<double>() == doctest::Approx(0.5 * 0.8796).epsilon(0.01));  // of a normal cut at two deviations
  for (const char* name : {"one.weight", "three.weight", "stem.weight"}) {         // wide, tall, of four dimensions
    initialize_weights(program, {.initializer = Initializer::orthogonal, .scale = 2.0});
    const at::Tensor rows = tensor_of(program, name).flatten(1);
    const at::Tensor product = rows.size(0) < rows.size(1) ? rows.matmul(rows.t()) : rows.t().matmul(rows);
    CHECK(product.sub(at::eye(product.size(0)), 4).abs().max().item<double>() < 1e-4);
  }
}

TEST_CASE("tied weights are filled once, buffers stay") {
  Program program = make_net();
  Weight& second = *std::find_if(program.weights.begin(), program.weights.end(),
                                 [](const Weight& weight) { return weight.name == "three.bias"; });
  second.role = WeightRole::buffer;
  CHECK(!list_rules(initialize_weights(program)).contains("three.bias"));
  CHECK(second.tensor.eq(0.5).all().item<bool>());
  second.role = WeightRole::parameter;
  second.tensor = tensor_of(program, "gain");
  CHECK(list_rules(initialize_weights(program)).at("gain") != list_rules(initialize_weights(program)).at("three.bias"));
}

TEST_CASE("initializers have names, and smart has no scale") {
  CHECK(find_initializer("truncated_normal") == Initializer::truncated_normal);
  CHECK(!find_initializer("clever"));
  EXPECT_ERROR(invalid_input, initialize_weights(make_net(), {.scale = 1.0}), "'smart' takes no scale");
  EXPECT_ERROR(invalid_input, initialize_weights(make_net(), {.initializer = Initializer::normal, .scale = 0.0}),
               "above 0, not 0");
}

// What is frozen has no gradient, and goes with what it is tied to.
#include "lissome/train/rewrite/freeze.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "lissome/train/step/training_step.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

using Names = std::vector<std::string>;

Program make_products() {
  Program program = parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 2]\n"
      "parameter @table: f32[2, 2]\n"
      "parameter @middle: f32[2, 2]\n"
      "parameter @head: f32[2, 2] tied @table\n"
      "%a: f32[n, 2] = aten::linear(%x, @table)\n"
      "%b: f32[n, 2] = aten::linear(%a, @middle)\n"
      "%c: f32[n, 2] = aten::linear(%b, @head)\n"
      "%s: f32[] = aten::sum(%c)\n"
      "return %s\n");
  for (Weight& weight : program.weights) weight.tensor.fill_(0.5);
  return program;
}

Names list_trained(const std::vector<ParameterGroup>& groups) {
  return TrainingStep(freeze_parameters(make_products(), groups), {at::ones({3, 2})}).names();
}

}  // namespace

TEST_CASE("the gradient of what trains is the same, that of what is frozen is not computed") {
  const Program program = make_products();
  TrainingStep all(program, {at::ones({3, 2})});
  TrainingStep some(freeze_parameters(program, {{.pattern = "table", .frozen = true}}), {at::ones({3, 2})});
  all.run({at::ones({5, 2})}), some.run({at::ones({5, 2})});
  CHECK(all.names() == Names{"table", "middle"});
  REQUIRE(some.names() == Names{"middle"});
  CHECK(at::allclose(some.gradients()[0], all.gradients()[1]));
  CHECK(some.program().nodes.size() < all.program().nodes.size());
}

TEST_CASE("the first group that fits counts, and a tied parameter is frozen by each of its names") {
  CHECK(list_trained({{.pattern = "m*", .lr_factor = 2}, {.pattern = "*", .frozen = true}}) == Names{"middle"});
  CHECK(list_trained({{.pattern = "head", .frozen = true}}) == Names{"middle"});
  CHECK(list_trained({{.pattern = "table", .frozen = true}}) == Names{"middle"});
  CHECK(list_training_groups({{.pattern = "a"}, {.pattern = "b", .frozen = true}}).size() == 1);
}

TEST_CASE("a pattern that fits nothing, and freezing everything, are refused") {
  EXPECT_ERROR(invalid_input, freeze_parameters(make_products(), {{.pattern = "none.*", .frozen = true}}),
               "no parameter matches the pattern 'none.*'", "the model has ");
  EXPECT_ERROR(invalid_input, list_trained({{.pattern = "*", .frozen = true}}), "no parameters to train");
}

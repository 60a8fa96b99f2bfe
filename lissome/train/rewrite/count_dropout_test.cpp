#include "lissome/train/rewrite/count_dropout.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <doctest/doctest.h>

#include "lissome/lower.h"
#include "lissome/train/step/training_step.h"

using namespace lissome;

namespace {

// Two dropouts, the forward and a backward product of each.
Program make_dropouts() {
  return parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 50]\n"
      "input %g: f32[n, 50]\n"
      "%e: f32[n, 50] = aten::empty_like(%x)\n"
      "%b: f32[n, 50] = aten::bernoulli.p(%e, 0.75)\n"
      "%m: f32[n, 50] = aten::div.Scalar(%b, 0.75)\n"
      "%y: f32[n, 50] = aten::mul.Tensor(%x, %m)\n"
      "%b2: f32[n, 50] = aten::bernoulli.p(%e, 0.5)\n"
      "%m2: f32[n, 50] = aten::div.Scalar(%b2, 0.5)\n"
      "%z: f32[n, 50] = aten::mul.Tensor(%y, %m2)\n"
      "%h: f32[n, 50] = aten::mul.Tensor(%m2, %g)\n"
      "%d: f32[n, 50] = aten::mul.Tensor(%h, %m)\n"
      "return %z, %d\n");
}

std::vector<at::Tensor> run_dropouts(Session& session, const at::Tensor& x, const at::Tensor& g, int64_t seed) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : run_session(session, {x, g, at::full({}, seed, at::kLong)}))
    tensors.push_back(value.toTensor());
  return tensors;
}

}  // namespace

TEST_CASE("masks become counted dropout, the same in both directions, in kernels and in ATen") {
  Program program = make_dropouts();
  REQUIRE(count_dropout(program) > 0);
  verify_program(program, Stage::imported);
  for (const Node& node : program.nodes) CHECK_FALSE(find_effects(program, node).random);
  LowerOptions options;
  options.effort = Effort::fast;
  Session session(std::make_shared<Plan>(lower_program(program, options)));
  const at::Tensor ones = at::ones({40, 50});
  const auto first = run_dropouts(session, ones, ones, 7);
  // The gradient went through what the value went through.
  CHECK(at::equal(first[0], first[1]));
  const double kept = first[0].ne(0).sum().item().toDouble() / 2000;
  CHECK(kept == doctest::Approx(0.375).epsilon(0.15));
  CHECK(at::allclose(first[0].masked_select(first[0].ne(0)), at::full({1}, 1 / 0.375)));
  const auto interpreted = interpret(program, {ones, ones, at::full({}, 7, at::kLong)});
  CHECK(at::equal(first[0], interpreted[0].toTensor()));
  CHECK(at::equal(first[0], run_dropouts(session, ones, ones, 7)[0]));
  CHECK_FALSE(at::equal(first[0], run_dropouts(session, ones, ones, 8)[0]));
}

TEST_CASE("a mask that leaves, or is added, stays as it was drawn") {
  Program program = parse_program(
      "input %x: f32[3]\n"
      "%b: f32[3] = aten::bernoulli.p(%x, 0.75)\n"
      "%m: f32[3] = aten::div.Scalar(%b, 0.75)\n"
      "%y: f32[3] = aten::mul.Tensor(%x, %m)\n"
      "return %y, %m\n");
  const Program before = program;
  CHECK(count_dropout(program) == 0);
  CHECK(same_program(program, before));
}

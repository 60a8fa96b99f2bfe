// A step through attention that was written out gives the gradients that autograd gives for it, and keeps no scores.
#include "lissome/train/rewrite/restore_attention.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lissome/differentiate.h"
#include "lissome/train/step/precision.h"
#include "lissome/train/step/training_step.h"
#include "tests/program_helpers.h"

using namespace lissome;

namespace {

Program make_attention(const std::string& before_softmax, const std::string& after_softmax = "") {
  at::manual_seed(5);
  Program program = parse_program(
      "dim n in 1..64\n"
      "training\n"
      "input %x: f32[n, 2, 40, 16]\n"
      "parameter @w: f32[16, 16]\n"
      "parameter @u: f32[16, 16]\n"
      "%q: f32[n, 2, 40, 16] = aten::linear(%x, @w)\n"
      "%v: f32[n, 2, 40, 16] = aten::linear(%x, @u)\n"
      "%t: f32[n, 2, 16, 40] = aten::transpose.int(%q, -2, -1)\n"
      "%s: f32[n, 2, 40, 40] = aten::matmul(%x, %t)\n" +
      before_softmax + "%p: f32[n, 2, 40, 40] = aten::softmax.int(%d, -1)\n" + after_softmax +
      "%y: f32[n, 2, 40, 16] = aten::matmul(%" + (after_softmax.empty() ? "p" : "o") +
      ", %v)\n"
      "%z: f32[] = aten::sum(%y)\n"
      "return %z\n");
  for (Weight& weight : program.weights) weight.tensor.normal_(0, 0.3);
  return program;
}

constexpr const char* kScaled = "%d: f32[n, 2, 40, 40] = aten::div.Tensor(%s, 4.0)\n";

}  // namespace

TEST_CASE("attention that is written out keeps no scores, and its gradients are those of the written form") {
  const Program program = make_attention(kScaled);
  const std::vector<at::Tensor> inputs = {at::randn({3, 2, 40, 16})};
  TrainingStep step(program, {at::randn({2, 2, 40, 16})});
  CHECK(count_ops(step.program(), "aten::_scaled_dot_product_flash_attention_for_cpu") == 1);
  CHECK(count_ops(step.program(), "aten::softmax.int") + count_ops(step.program(), "aten::_softmax") == 0);
  const at::Tensor loss = step.run(inputs).at(0).clone();
  const Program plain = differentiate_program(program, {"w", "u"}, inputs);
  const std::vector<c10::IValue> wanted = interpret(plain, {inputs[0]});
  CHECK(at::allclose(loss, wanted.at(0).toTensor(), 1e-4, 1e-4));
  for (size_t i = 0; i < 2; ++i) CHECK(at::allclose(step.gradients()[i], wanted.at(1 + i).toTensor(), 1e-4, 1e-4));
}

TEST_CASE("under autocast too") {
  const Program cast = apply_autocast(make_attention(kScaled), Dtype::bf16);
  const TrainingStep step(cast, {at::randn({2, 2, 40, 16})});
  CHECK(count_ops(step.program(), "aten::_scaled_dot_product_flash_attention_for_cpu") == 1);
}

TEST_CASE("where dropout stands between, and where there is no attention, the program stays") {
  const Program dropped = make_attention(kScaled, "%o: f32[n, 2, 40, 40] = aten::dropout(%p, 0.1, true)\n");
  Program after = dropped;
  CHECK(restore_attention(after) == 0);
  CHECK(same_program(after, dropped));
  const Program none = parse_program(
      "input %x: f32[3, 4]\n"
      "parameter @w: f32[4, 4]\n"
      "%a: f32[3, 4] = aten::linear(%x, @w)\n"
      "%b: f32[3, 4] = aten::clone(%a)\n"
      "return %b\n");
  Program same = none;
  CHECK(restore_attention(same) == 0);
  CHECK(same_program(same, none));
}

// A loss on a model is what PyTorch's loss on its outputs is; labels that do not fit are refused.
#include "lissome/train/step/loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include "tests/expect_error.h"

using namespace lissome;

namespace {

Program parse_scores(const std::string& sizes) {
  return parse_program("dim n in 1..64\ninput %x: f32[" + sizes + "]\n%y: f32[" + sizes +
                       "] = aten::mul.Tensor(%x, 0.5)\nreturn %y\n");
}

double loss_of(const Program& program, const at::Tensor& x, const at::Tensor& labels) {
  verify_program(program, Stage::imported);
  CHECK(program.outputs[0].name == "loss");
  CHECK(program.inputs.back().name == "labels");
  return interpret(program, {x, labels})[0].toTensor().item().toDouble();
}

}  // namespace

TEST_CASE("cross entropy takes classes second or last, weights, smoothing and an ignored label") {
  const at::Tensor flat = at::randn({6, 4}), labels = at::tensor({0, 3, 2, 1, 0, 3}, at::kLong);
  const LossOptions plain;
  CHECK(loss_of(attach_loss(parse_scores("n, 4"), plain, Dtype::i64, {}), flat, labels) ==
        doctest::Approx(at::cross_entropy_loss(flat * 0.5, labels).item().toDouble()));

  LossOptions full;
  full.label_smoothing = 0.1, full.ignored_label = 3, full.class_weights = {1, 2, 0.5, 1};
  const at::Tensor weights = at::tensor(full.class_weights, at::kFloat);
  CHECK(loss_of(attach_loss(parse_scores("n, 4"), full, Dtype::i64, {}), flat, labels) ==
        doctest::Approx(at::cross_entropy_loss(flat * 0.5, labels, weights, 1, 3, 0.1).item().toDouble()));

  const at::Tensor image = at::randn({2, 4, 5, 3}), pixels = at::randint(0, 4, {2, 5, 3}, at::kLong);
  CHECK(loss_of(attach_loss(parse_scores("n, 4, 5, 3"), plain, Dtype::i64, {5, 3}), image, pixels) ==
        doctest::Approx(at::cross_entropy_loss(image * 0.5, pixels).item().toDouble()));

  const at::Tensor words = at::randn({2, 7, 9}), next = at::randint(0, 9, {2, 7}, at::kLong);
  CHECK(loss_of(attach_loss(parse_scores("n, 7, 9"), plain, Dtype::i64, {7}), words, next) ==
        doctest::Approx(at::cross_entropy_loss(words.flatten(0, 1) * 0.5, next.flatten()).item().toDouble()));
}

TEST_CASE("cross entropy takes a probability for each class") {
  const at::Tensor flat = at::randn({6, 4}), image = at::randn({2, 4, 5});
  const at::Tensor soft = at::rand({6, 4}).softmax(1), pixels = at::rand({2, 4, 5}).softmax(1);
  LossOptions options;
  CHECK(loss_of(attach_loss(parse_scores("n, 4"), options, Dtype::f32, {4}), flat, soft) ==
        doctest::Approx(at::cross_entropy_loss(flat * 0.5, soft).item().toDouble()));
  options.label_smoothing = 0.1, options.class_weights = {1, 2, 0.5, 1};
  const at::Tensor weights = at::tensor(options.class_weights, at::kFloat);
  CHECK(loss_of(attach_loss(parse_scores("n, 4, 5"), options, Dtype::f32, {4, 5}), image, pixels) ==
        doctest::Approx(at::cross_entropy_loss(image * 0.5, pixels, weights, 1, -100, 0.1).item().toDouble()));
}

TEST_CASE("targets that are integers are compared as numbers") {
  const at::Tensor x = at::rand({5, 3}), target = at::randint(0, 2, {5, 3}, at::kLong);
  const LossOptions options{.kind = LossKind::bce, .output = {}, .class_weights = {}};
  CHECK(loss_of(attach_loss(parse_scores("n, 3"), options, Dtype::i64, {3}), x, target) ==
        doctest::Approx(at::binary_cross_entropy(x * 0.5, target.to(at::kFloat)).item().toDouble()));
}

TEST_CASE("a target for each sample meets a model that gives one number for it") {
  const at::Tensor x = at::randn({5, 1}), target = at::randint(0, 2, {5}, at::kLong);
  const double wanted =
      at::binary_cross_entropy((x * 0.5).sigmoid(), target.to(at::kFloat).unsqueeze(1)).item().toDouble();
  const LossOptions options{.kind = LossKind::bce_logits, .output = {}, .class_weights = {}};
  CHECK(loss_of(attach_loss(parse_scores("n, 1"), options, Dtype::i64, {}), x, target) == doctest::Approx(wanted));
  CHECK(loss_of(attach_loss(parse_scores("n, 1"), options, Dtype::f32, {}), x, target.to(at::kFloat)) ==
        doctest::Approx(wanted));
  EXPECT_ERROR(invalid_input, attach_loss(parse_scores("n, 3"), options, Dtype::f32, {}), "[n]", "[n, 3]");
}

TEST_CASE("losses that compare with targets") {
  const at::Tensor x = at::rand({5, 3}), target = at::rand({5, 3}), y = x * 0.5;
  const auto loss = [&](LossKind kind) {
    LossOptions options;
    options.kind = kind, options.delta = 0.25;
    return loss_of(attach_loss(parse_scores("n, 3"), options, Dtype::f32, {3}), x, target);
  };
  CHECK(loss(LossKind::mse) == doctest::Approx(at::mse_loss(y, target).item().toDouble()));
  CHECK(loss(LossKind::l1) == doctest::Approx(at::l1_loss(y, target).item().toDouble()));
  CHECK(loss(LossKind::huber) == doctest::Approx(at::huber_loss(y, target, 1, 0.25).item().toDouble()));
  CHECK(loss(LossKind::bce) == doctest::Approx(at::binary_cross_entropy(y, target).item().toDouble()));
  CHECK(loss(LossKind::bce_logits) == doctest::Approx(at::binary_cross_entropy(y.sigmoid(), target).item().toDouble()));
}

TEST_CASE("a loss that the model computes itself becomes its first output") {
  const Program model = parse_program(
      "input %x: f32[4]\n"
      "%y: f32[4] = aten::mul.Tensor(%x, 2.0)\n"
      "%s: f32[] = aten::sum(%y)\n"
      "return %y, %s\n");
  LossOptions options = parse_loss(model.outputs[1].name, model);
  CHECK(options.kind == LossKind::output);
  const Program program = attach_loss(model, options, Dtype::f32, {});
  REQUIRE(program.outputs.size() == 2);
  CHECK(program.inputs.size() == 1);
  CHECK(interpret(program, {at::tensor({1.F, 2.F, 3.F, 4.F})})[0].toTensor().item().toDouble() == 20);
  options.output = model.outputs[0].name;
  EXPECT_ERROR(invalid_input, attach_loss(model, options, Dtype::f32, {}), "[4]", "one number");
}

TEST_CASE("what does not fit is refused with the sizes") {
  const Program scores = parse_scores("n, 4");
  LossOptions options;
  EXPECT_ERROR(invalid_input, attach_loss(scores, options, Dtype::f32, {}), "f32", "class numbers");
  EXPECT_ERROR(invalid_input, attach_loss(scores, options, Dtype::f32, {3}), "[n, 3]", "a probability for each class");
  EXPECT_ERROR(invalid_input, attach_loss(scores, options, Dtype::i64, {4}), "[n, 4]", "the second or the last");
  options.class_weights = {1, 1};
  EXPECT_ERROR(invalid_input, attach_loss(scores, options, Dtype::i64, {}), "2 class weights for 4 classes");
  const double nan = std::nan("");
  for (const std::vector<double>& weights :
       {std::vector<double>{0, 0, 0, 0}, {1, 2, 3, -50}, {nan, 1, 1, 1}, {1, 1, 1, HUGE_VAL}}) {
    options.class_weights = weights;
    EXPECT_ERROR(usage, attach_loss(scores, options, Dtype::i64, {}), "finite numbers from 0 on");
  }
  options = {};
  options.ignored_label = 2;
  EXPECT_ERROR(invalid_input, attach_loss(scores, options, Dtype::f32, {4}), "label 2", "probabilities");
  options = {};
  options.kind = LossKind::mse;
  EXPECT_ERROR(invalid_input, attach_loss(scores, options, Dtype::f32, {3}), "[n, 3]", "[n, 4]");
  EXPECT_ERROR(usage, parse_loss("hinge", scores), "hinge", "cross_entropy", scores.outputs[0].name);
}

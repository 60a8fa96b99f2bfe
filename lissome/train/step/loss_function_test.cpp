// Losses written in C++ become nodes that hold at any batch, and train as the ready ones do.
#include "lissome/train/step/loss_function.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <doctest/doctest.h>

#include "lissome/train/step/loss.h"
#include "lissome/train/step/training_step.h"
#include "tests/expect_error.h"

using namespace lissome;

namespace {

Program make_two_outputs() {
  return parse_program(
      "dim n in 1..64\n"
      "input %x: f32[n, 3]\n"
      "parameter @w: f32[2, 3] = 0.5\n"
      "%y: f32[n, 2] = aten::linear(%x, @w)\n"
      "%z: f32[n, 2] = aten::relu(%y)\n"
      "return %y, %z\n");
}

// Mean squared error with weights on the two columns, and a share of the second output.
at::Tensor measure_loss(const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
  const at::Tensor weights = at::tensor({1.0F, 2.0F});
  return outputs[0].sub(labels).square().mul(weights).mean().add(outputs[1].mean(), 0.1);
}

}  // namespace

TEST_CASE("the program computes what the function computes, at other batches too") {
  const Program with_loss =
      attach_loss_function(make_two_outputs(), measure_loss, {at::randn({3, 3}), at::randn({3, 2})});
  CHECK(with_loss.inputs.back().name == "labels");
  CHECK(with_loss.outputs.size() == 3);
  for (const int64_t batch : {3, 5}) {
    const at::Tensor x = at::randn({batch, 3}), labels = at::randn({batch, 2});
    const auto outputs = interpret(with_loss, {x, labels});
    const at::Tensor wanted = measure_loss({outputs[1].toTensor(), outputs[2].toTensor()}, labels);
    CHECK(at::equal(outputs[0].toTensor(), wanted));
  }
}

TEST_CASE("its gradients are those of the ready loss where it says the same") {
  const LossFunction function = [](const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
    return at::mse_loss(outputs[0], labels);
  };
  const std::vector<at::Tensor> examples = {at::randn({3, 3}), at::randn({3, 2})};
  const Program own = attach_loss_function(make_two_outputs(), function, examples);
  const Program ready =
      attach_loss(make_two_outputs(), {.kind = LossKind::mse, .output = "", .class_weights = {}}, Dtype::f32, {2});
  TrainingStep first(own, examples), second(ready, examples);
  const std::vector<at::Tensor> batch = {at::randn({6, 3}), at::randn({6, 2})};
  CHECK(at::equal(first.run(batch)[0], second.run(batch)[0]));
  CHECK(at::equal(first.gradients()[0], second.gradients()[0]));
}

TEST_CASE("a loss is a scalar") {
  const LossFunction no_scalar = [](const std::vector<at::Tensor>& outputs, const at::Tensor&) { return outputs[0]; };
  EXPECT_ERROR(invalid_input, attach_loss_function(make_two_outputs(), no_scalar, {at::randn({3, 3})}), "scalar");
}

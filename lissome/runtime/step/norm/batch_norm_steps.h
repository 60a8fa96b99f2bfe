// Batch norm in training form, forward and backward: each is one pass of sums (channel_sums), one of the steps below,
// which works on a few numbers a channel, and one pass that maps the rows (channel_affine).
#pragma once

#include "lissome/runtime/step/norm/channel_steps.h"

namespace lissome {

// Gives, from the sums of x [batch, channels, ...], mean and 1 / sqrt(variance + epsilon) of each channel, the running
// statistics after this batch, and scale and shift of y = scale * x + shift. Without weight and bias these count as 1
// and 0. All vectors are [channels].
// Case, n = 1..3 (4), c = 1..40 (64), h = 3..7 (28), w = 2..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %scale: f32[{c}]
//   input %shift: f32[{c}]
//   input %mean: f32[{c}]
//   input %var: f32[{c}]
//   %y: f32[{n}, {c}, {h}, {w}], %m: f32[{c}], %r: f32[{c}], %nm: f32[{c}], %nv: f32[{c}] =
//     aten::_native_batch_norm_legit_functional(%x, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
//   return %y, %m, %r, %nm, %nv
// Case, rows = 5..20 (2048), c = 1..40 (512):
//   # Of rows, without weight and bias.
//   input %x: f32[{rows}, {c}]
//   input %mean: f32[{c}]
//   input %var: f32[{c}]
//   %y: f32[{rows}, {c}], %m: f32[{c}], %r: f32[{c}], %nm: f32[{c}], %nv: f32[{c}] =
//     aten::_native_batch_norm_legit_functional(%x, none, none, %mean, %var, true, 0.3, 0.001)
//   return %y, %m, %r, %nm, %nv
struct BatchNormStatisticsStep {
  static constexpr std::string_view kKernel = "batch_norm_statistics";
  Operand sums, x;
  OptionalOperand weight, bias;
  Operand running_mean, running_variance;
  Result mean, reciprocal_deviation, new_mean, new_variance, scale, shift;
  double momentum = 0.1, epsilon = 1e-5;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("sums", step.sums, {Dtype::f64});
    fields.operand("x", step.x, kRowDtypes, ValueLayout::channels_last);
    fields.leaves_open(step.x, {0, 2, 3});
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("running mean", step.running_mean, {Dtype::f32});
    fields.operand("running variance", step.running_variance, {Dtype::f32});
    fields.result("mean", step.mean, {Dtype::f32});
    fields.result("reciprocal deviation", step.reciprocal_deviation, {Dtype::f32});
    fields.result("new mean", step.new_mean, {Dtype::f32});
    fields.result("new variance", step.new_variance, {Dtype::f32});
    fields.result("scale", step.scale, {Dtype::f32});
    fields.result("shift", step.shift, {Dtype::f32});
    fields.any_number("momentum", step.momentum);
    fields.any_number("epsilon", step.epsilon);
  }
};

// Gives, from the sums of dy and x, the gradients of weight and bias, and the numbers of
// dx = dy_scale * dy + x_scale * (x - mean) + shift. Without weight it counts as 1. All vectors are [channels].
// Case, n = 1..3 (1), c = 1..20 (64), h = 3..7 (28), w = 2..6 (28):
//   # A residual block of training: convolution, batch norm, ReLU, and their gradients.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %w: f32[{c}, {c}, 3, 3]
//   input %scale: f32[{c}]
//   input %shift: f32[{c}]
//   input %mean: f32[{c}]
//   input %var: f32[{c}]
//   %dy: f32[{n}, {c}, {h}, {w}] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
//   %c: f32[{n}, {c}, {h}, {w}] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
//   %b: f32[{n}, {c}, {h}, {w}], %m: f32[{c}], %r: f32[{c}], %nm: f32[{c}], %nv: f32[{c}] =
//     aten::_native_batch_norm_legit_functional(%c, %scale, %shift, %mean, %var, true, 0.1, 1e-05)
//   %s: f32[{n}, {c}, {h}, {w}] = aten::add.Tensor(%b, %x)
//   %y: f32[{n}, {c}, {h}, {w}] = aten::relu(%s)
//   %g: f32[{n}, {c}, {h}, {w}] = aten::threshold_backward(%dy, %y, 0)
//   %dc: f32[{n}, {c}, {h}, {w}], %dscale: f32[{c}], %dshift: f32[{c}] = aten::native_batch_norm_backward(
//     %g, %c, %scale, %mean, %var, %m, %r, true, 1e-05, [true, true, true])
//   return %y, %dc, %dscale, %dshift, %nm, %nv
struct BatchNormGradientsStep {
  static constexpr std::string_view kKernel = "batch_norm_gradients";
  Operand sums;
  OptionalOperand weight;
  Operand reciprocal_deviation, x;
  Result weight_gradient, bias_gradient, dy_scale, x_scale, shift;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("sums", step.sums, {Dtype::f64});
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.operand("reciprocal deviation", step.reciprocal_deviation, {Dtype::f32});
    fields.operand("x", step.x, kRowDtypes, ValueLayout::channels_last);
    fields.leaves_open(step.x, {0, 2, 3});
    fields.result("weight gradient", step.weight_gradient, {Dtype::f32});
    fields.result("bias gradient", step.bias_gradient, {Dtype::f32});
    fields.result("dy scale", step.dy_scale, {Dtype::f32});
    fields.result("x scale", step.x_scale, {Dtype::f32});
    fields.result("shift", step.shift, {Dtype::f32});
  }
};

}  // namespace lissome

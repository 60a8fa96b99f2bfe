// Batch norm in training form, forward and backward: each is one pass of sums (channel_sums), one of the steps below,
// which works on a few numbers a channel, and one pass that maps the rows (channel_affine).
#pragma once

#include "lissome/runtime/step/norm/channel_steps.h"

namespace lissome {

// Gives, from the sums of x [batch, channels, ...], mean and 1 / sqrt(variance + epsilon) of each channel, the running
// statistics after this batch, and scale and shift of y = scale * x + shift. Without weight and bias these count as 1
// and 0. All vectors are [channels].
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
    fields.result("weight gradient", step.weight_gradient, {Dtype::f32});
    fields.result("bias gradient", step.bias_gradient, {Dtype::f32});
    fields.result("dy scale", step.dy_scale, {Dtype::f32});
    fields.result("x scale", step.x_scale, {Dtype::f32});
    fields.result("shift", step.shift, {Dtype::f32});
  }
};

}  // namespace lissome

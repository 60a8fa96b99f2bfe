// Layer norm (Ba et al., arXiv:1607.06450) and its form without a mean, RMS norm (Zhang and Sennrich,
// arXiv:1910.07467), of rows of `width` numbers, which may be several of the last dimensions.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = (s - mean) * factor * weight + bias, s = x + residual, factor = 1 / sqrt(variance + epsilon). With
// root_mean_square the mean counts as 0, also in the variance. x, residual and y are of one size; weight and bias are
// [width], 1 and 0 where they are not given. Further results: s alone; or with `statistics` the mean and the factor of
// each row, both of them.
struct LayerNormStep {
  static constexpr std::string_view kKernel = "layer_norm";
  Operand x;
  OptionalOperand residual, weight, bias;
  Result y;
  OptionalResult sum_or_mean, factor;
  int64_t width = 0;
  double epsilon = 0;
  bool root_mean_square = false, statistics = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32});
    fields.operand("residual", step.residual, {Dtype::f32});
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.result("y", step.y, {Dtype::f32});
    fields.result("sum or mean", step.sum_or_mean, {Dtype::f32});
    fields.result("factor", step.factor, {Dtype::f32});
    fields.integer("width", step.width, 1, kLargestBytes, kRequired);
    fields.any_number("epsilon", step.epsilon);
    fields.flag("root_mean_square", step.root_mean_square);
    fields.flag("statistics", step.statistics);
    fields.reuses(step.x);
    fields.reuses(step.residual);
  }
};

// Layer norm of rows of bf16, computed in f32, without residual and further results.
struct LayerNormBf16Step {
  static constexpr std::string_view kKernel = "layer_norm_bf16";
  Operand x;
  OptionalOperand weight, bias;
  Result y;
  int64_t width = 0;
  double epsilon = 0;
  bool root_mean_square = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::bf16});
    fields.operand("weight", step.weight, {Dtype::bf16});
    fields.operand("bias", step.bias, {Dtype::bf16});
    fields.result("y", step.y, {Dtype::bf16});
    fields.integer("width", step.width, 1, kLargestBytes, kRequired);
    fields.number("epsilon", step.epsilon, 0, 1e30);
    fields.flag("root_mean_square", step.root_mean_square);
    fields.reuses(step.x);
  }
};

}  // namespace lissome

// Layer norm (Ba et al., arXiv:1607.06450) and its form without a mean, RMS norm (Zhang and Sennrich,
// arXiv:1910.07467), of rows of `width` numbers, which may be several of the last dimensions.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = (s - mean) * factor * weight + bias, s = x + residual, factor = 1 / sqrt(variance + epsilon). With
// root_mean_square the mean counts as 0, also in the variance. x, residual and y are of one size; weight and bias are
// [width], 1 and 0 where they are not given. Further results: s alone; or with `statistics` the mean and the factor of
// each row, both of them.
// Case, rows = 1..9 (512), width = 1..70 (768):
//   input %x: f32[{rows}, {width}]
//   parameter @n: f32[{width}]
//   parameter @b: f32[{width}]
//   %y: f32[{rows}, {width}] = aten::layer_norm(%x, [{width}], @n, @b)
//   return %y
// Case, rows = 1..9 (512), width = 1..70 (768):
//   # The norm makes the sum before it, which is read once more.
//   input %x: f32[{rows}, {width}]
//   input %more: f32[{rows}, {width}]
//   parameter @n: f32[{width}]
//   %s: f32[{rows}, {width}] = aten::add.Tensor(%x, %more)
//   %y: f32[{rows}, {width}] = aten::layer_norm(%s, [{width}], @n)
//   return %s, %y
// Case, rows = 1..9 (512), width = 1..70 (768):
//   input %x: f32[{rows}, {width}]
//   parameter @n: f32[{width}]
//   %y: f32[{rows}, {width}] = aten::rms_norm(%x, [{width}], @n, 1e-05)
//   return %y
// Case, n = 1..5 (16), a = 1..5 (32), b = 1..20 (768):
//   # Over two dimensions; with the statistics of each row.
//   input %x: f32[{n}, {a}, {b}]
//   %y: f32[{n}, {a}, {b}], %mean: f32[{n}, 1, 1], %factor: f32[{n}, 1, 1] =
//     aten::native_layer_norm(%x, [{a}, {b}], none, none, 1e-05)
//   return %y, %mean, %factor
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
// Case, rows = 1..9 (512), width = 1..70 (768):
//   input %x: f32[{rows}, {width}]
//   parameter @n: bf16[{width}]
//   parameter @b: bf16[{width}]
//   %0: bf16[{rows}, {width}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{rows}, {width}] = aten::layer_norm(%0, [{width}], @n, @b)
//   return %y
// Case, rows = 1..9 (512), width = 1..70 (768):
//   input %x: f32[{rows}, {width}]
//   parameter @n: bf16[{width}]
//   %0: bf16[{rows}, {width}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{rows}, {width}] = aten::rms_norm(%0, [{width}], @n, 1e-05)
//   return %y
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
    fields.any_number("epsilon", step.epsilon);
    fields.flag("root_mean_square", step.root_mean_square);
    fields.reuses(step.x);
  }
};

}  // namespace lissome

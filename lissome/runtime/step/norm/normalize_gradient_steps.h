// Gradients of layer norm and of softmax; see kernel/norm/normalize_gradient.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// dx of y = h * weight + bias with h = (x - mean) * factor, rows of `width` numbers (layer_norm_steps.h); dy, x and dx
// are of one size. mean and factor are one number a row; the weight is [width], 1 where it is not given. weight_sums
// and bias_sums [kGradientShares, width] are the sums of dy * h and of dy over each share of the rows.
// Case, n = 1..3 (4), rows = 1..9 (128), width = 5..40 (768):
//   input %x: f32[{n}, {rows}, {width}]
//   input %w: f32[{width}]
//   input %b: f32[{width}]
//   input %dy: f32[{n}, {rows}, {width}]
//   %y: f32[{n}, {rows}, {width}], %mean: f32[{n}, {rows}, 1], %factor: f32[{n}, {rows}, 1] =
//     aten::native_layer_norm(%x, [{width}], %w, %b, 1e-05)
//   %dx: f32[{n}, {rows}, {width}], %dw: f32[{width}], %db: f32[{width}] = aten::native_layer_norm_backward(
//     %dy, %x, [{width}], %mean, %factor, %w, %b, [true, true, true])
//   return %y, %dx, %dw, %db
struct LayerNormGradientStep {
  static constexpr std::string_view kKernel = "layer_norm_gradient";
  Operand dy, x, mean, factor;
  OptionalOperand weight;
  Result dx, weight_sums, bias_sums;
  int64_t width = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("dy", step.dy, {Dtype::f32});
    fields.operand("x", step.x, {Dtype::f32});
    fields.operand("mean", step.mean, {Dtype::f32});
    fields.operand("factor", step.factor, {Dtype::f32});
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.result("dx", step.dx, {Dtype::f32});
    fields.result("weight sums", step.weight_sums, {Dtype::f32});
    fields.result("bias sums", step.bias_sums, {Dtype::f32});
    fields.integer("width", step.width, 1, kLargestBytes, kRequired);
    fields.reuses(step.dy);
  }
};

// For y = softmax(x): dx = y * (dy - sum of dy * y); with `logarithm`, for its logarithm: dx = dy - exp(y) * sum of dy.
// dy, y and dx are of one size: rows, or with `channels` [batch, channels, height, width] with channels last, over
// channels.
// Case, rows = 1..9 (512), columns = 1..70 (1000):
//   input %x: f32[{rows}, {columns}]
//   input %dy: f32[{rows}, {columns}]
//   %parts: f32[{rows}, {columns}] = aten::softmax.int(%x, 1)
//   %dx: f32[{rows}, {columns}] = aten::_softmax_backward_data(%dy, %parts, 1, f32)
//   return %dx
// Case, n = 1..3 (2), c = 1..40 (21), h = 1..5 (64), w = 1..6 (64):
//   # Of the logarithm, over the channels of images.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %dy: f32[{n}, {c}, {h}, {w}]
//   %logarithms: f32[{n}, {c}, {h}, {w}] = aten::_log_softmax(%x, 1, false)
//   %dx: f32[{n}, {c}, {h}, {w}] = aten::_log_softmax_backward_data(%dy, %logarithms, 1, f32)
//   return %dx
struct SoftmaxGradientStep {
  static constexpr std::string_view kKernel = "softmax_gradient";
  Operand dy, y;
  Result dx;
  bool channels = false, logarithm = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("dy", step.dy, {Dtype::f32}, ValueLayout::dense);
    fields.operand("y", step.y, {Dtype::f32}, ValueLayout::dense);
    fields.result("dx", step.dx, {Dtype::f32}, ValueLayout::dense);
    fields.flag("channels", step.channels);
    fields.flag("logarithm", step.logarithm);
    fields.reuses(step.dy);
    fields.reuses(step.y);
  }
};

}  // namespace lissome

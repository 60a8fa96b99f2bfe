// Cross entropy over class numbers, from logarithms of probabilities as softmax makes them; see kernel/loss/nll_loss.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// Common to the loss and its gradient: logarithms [rows, classes], or [images, classes, height, width] with channels
// last, whose pixels are the rows, and a label for each row. Rows with the label `ignored` do not count.
struct LabelledValues {
  Operand logarithms, labels;
  bool mean = true;  // of the rows that count, in place of their sum
  int64_t ignored = -100;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("logarithms", step.logarithms, {Dtype::f32}, ValueLayout::dense);
    fields.operand("labels", step.labels, {Dtype::i64});
    fields.flag("mean", step.mean, kRequired);
    fields.integer("ignored", step.ignored, INT64_MIN, INT64_MAX, kRequired);
  }
};

// loss = minus the sum, or mean, of the logarithm at each label; `counted`, one number as the loss, is how many rows
// count. A label out of range is a fault that the session throws.
// Case, rows = 1..9 (512), classes = 4..40 (1000):
//   input %x: f32[{rows}, {classes}]
//   input %labels: i64[{rows}]
//   %logarithms: f32[{rows}, {classes}] = aten::_log_softmax(%x, 1, false)
//   %loss: f32[], %counted: f32[] = aten::nll_loss_forward(%logarithms, %labels, none, 1, -100)
//   return %loss, %counted
// Case, n = 1..3 (4), classes = 4..40 (21), h = 1..5 (64), w = 1..6 (64):
//   # Of images; one label does not count.
//   input %x: f32[{n}, {classes}, {h}, {w}]
//   input %labels: i64[{n}, {h}, {w}]
//   %logarithms: f32[{n}, {classes}, {h}, {w}] = aten::_log_softmax(%x, 1, false)
//   %loss: f32[], %counted: f32[] = aten::nll_loss2d_forward(%logarithms, %labels, none, 2, 2)
//   return %loss, %counted
struct NllLossStep : LabelledValues {
  static constexpr std::string_view kKernel = "nll_loss";
  Result loss, counted;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    LabelledValues::describe(step, fields);
    fields.leaves_open(step.logarithms, {1});
    fields.result("loss", step.loss, {Dtype::f32});
    fields.result("counted", step.counted, {Dtype::f32});
  }
};

// The gradient with respect to what softmax read: dx = (exp(logarithm) - 1 at the label) * dloss, of a mean divided by
// `counted`, and 0 in rows that do not count.
// Case, rows = 1..9 (512), classes = 4..40 (1000):
//   input %x: f32[{rows}, {classes}]
//   input %labels: i64[{rows}]
//   %logarithms: f32[{rows}, {classes}] = aten::_log_softmax(%x, 1, false)
//   %loss: f32[], %counted: f32[] = aten::nll_loss_forward(%logarithms, %labels, none, 1, -100)
//   %one: f32[] = aten::ones_like(%loss)
//   %scores: f32[{rows}, {classes}] =
//     aten::nll_loss_backward(%one, %logarithms, %labels, none, 1, -100, %counted)
//   %dx: f32[{rows}, {classes}] = aten::_log_softmax_backward_data(%scores, %logarithms, 1, f32)
//   return %loss, %dx
// Case, n = 1..3 (2), classes = 4..40 (21), h = 1..5 (64), w = 1..6 (64):
//   # Of images; one label does not count.
//   input %x: f32[{n}, {classes}, {h}, {w}]
//   input %labels: i64[{n}, {h}, {w}]
//   input %dloss: f32[]
//   %logarithms: f32[{n}, {classes}, {h}, {w}] = aten::_log_softmax(%x, 1, false)
//   %loss: f32[], %counted: f32[] = aten::nll_loss2d_forward(%logarithms, %labels, none, 2, 2)
//   %scores: f32[{n}, {classes}, {h}, {w}] =
//     aten::nll_loss2d_backward(%dloss, %logarithms, %labels, none, 2, 2, %counted)
//   %dx: f32[{n}, {classes}, {h}, {w}] = aten::_log_softmax_backward_data(%scores, %logarithms, 1, f32)
//   return %loss, %dx
struct CrossEntropyGradientStep : LabelledValues {
  static constexpr std::string_view kKernel = "cross_entropy_gradient";
  Operand dloss, counted;
  Result dx;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    LabelledValues::describe(step, fields);
    fields.operand("dloss", step.dloss, {Dtype::f32});
    fields.operand("counted", step.counted, {Dtype::f32});
    fields.result("dx", step.dx, {Dtype::f32}, ValueLayout::dense);
    fields.reuses(step.logarithms);
  }
};

}  // namespace lissome

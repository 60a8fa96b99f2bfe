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
struct NllLossStep : LabelledValues {
  static constexpr std::string_view kKernel = "nll_loss";
  Result loss, counted;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    LabelledValues::describe(step, fields);
    fields.result("loss", step.loss, {Dtype::f32});
    fields.result("counted", step.counted, {Dtype::f32});
  }
};

// The gradient with respect to what softmax read: dx = (exp(logarithm) - 1 at the label) * dloss, of a mean divided by
// `counted`, and 0 in rows that do not count.
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

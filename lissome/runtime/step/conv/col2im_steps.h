// The second half of a transposed convolution of one group, behind a linear over pixels; see kernel/conv/col2im.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [batch, channels, (height,) width] = activation(sum of the columns [batch, (height,) width, taps * channels] that
// fall on a pixel + bias [channels]).
// Case, n = 1..2 (1), c = 1..20 (64), k = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @t: f32[{c}, {k}, 2, 2]
//   parameter @b: f32[{k}]
//   %y: f32[{n}, {k}, {2*h}, {2*w}] = aten::convolution(%x, @t, @b, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
//   return %y
// Case, n = 1..2 (1), c = 1..20 (64), k = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   # Windows overlap.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @t: f32[{c}, {k}, 4, 3]
//   %y: f32[{n}, {k}, {2*h}, {2*w}] =
//     lissome::conv_act(%x, @t, none, [2, 2], [1, 1], [1, 1], true, [0, 1], 1, "relu")
//   return %y
// Case, n = 1..2 (1), c = 1..20 (64), k = 1..20 (32), w = 1..40 (500):
//   input %x: f32[{n}, {c}, {w}]
//   parameter @t: f32[{c}, {k}, 8]
//   parameter @b: f32[{k}]
//   %y: f32[{n}, {k}, {4*w}] = aten::convolution(%x, @t, @b, [4], [2], [1], true, [0], 1)
//   return %y
struct Col2ImStep {
  static constexpr std::string_view kKernel = "col2im";
  Operand columns;
  OptionalOperand bias;
  Result y;
  WindowFields window;  // slides over y
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("columns", step.columns, {Dtype::f32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.result("y", step.y, {Dtype::f32}, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
    fields.integer("groups", step.window.groups, 1, 1);
    ActivationFields::describe(step.activation, fields);
  }
};

}  // namespace lissome

// The second half of a transposed convolution of one group, behind a linear over pixels; see kernel/conv/col2im.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [batch, channels, (height,) width] = activation(sum of the columns [batch, (height,) width, taps * channels] that
// fall on a pixel + bias [channels]).
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

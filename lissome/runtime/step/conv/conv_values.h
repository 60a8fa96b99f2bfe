// The values and attributes that convolutions in f32 and bf16 have in common, whatever kernel computes them.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

struct ConvDtypes {
  DtypeSet x, weight, y;  // the residual is of the dtype of y
  ValueLayout x_layout = ValueLayout::channels_last;
};

// y [batch, out channels, (height,) width] = activation(convolution of x [batch, in channels, (height,) width] + bias
// [out channels] + residual, as y). Values of rank 3 are images of height 1. Each kind packs its weight in its own way.
struct ConvValues {
  Operand x, weight;
  OptionalOperand bias, residual;
  Result y;
  WindowFields window;
  ActivationFields activation;
  bool residual_last = false;  // the residual is added behind the activation

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, const ConvDtypes& dtypes) {
    fields.operand("x", step.x, dtypes.x, dtypes.x_layout);
    fields.operand("weight", step.weight, dtypes.weight);
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("residual", step.residual, dtypes.y, ValueLayout::channels_last);
    fields.result("y", step.y, dtypes.y, ValueLayout::channels_last);
    WindowFields::describe(step.window, fields);
    ActivationFields::describe(step.activation, fields);
    fields.flag("residual_last", step.residual_last);
    fields.reuses(step.residual);
  }
};

// The same with all but the weight of one dtype.
template <Dtype X, Dtype Weight = Dtype::f32>
struct ConvValuesOf : ConvValues {
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{X}, {Weight}, {X}});
  }
};

}  // namespace lissome

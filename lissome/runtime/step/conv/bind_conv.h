// Common parts of the binders of convolutions in f32 and bf16.
#pragma once

#include "lissome/kernel.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// The activation, the bias and the residual behind the sums, whose sizes are checked.
template <typename Step, typename Call>
void read_conv_output(const StepBinder& binder, const Step& step, Call& call, const PlacedValue& y, int64_t channels) {
  call.y_stride = call.residual_stride = channels;
  call.epilogue = step.activation.epilogue();
  call.residual_place = residual_place(step.residual, step.residual_last);
  if (step.bias) binder.require_sizes(binder.value(step.bias), {channels});
  if (step.residual) {
    binder.require_dtype(binder.value(step.residual), y.dtype);
    binder.require_sizes(binder.value(step.residual), y.sizes);
  }
}

// `Item`: an element of y.
template <typename Call, typename Item = float, typename Step>
void point_conv_output(StepBinder& binder, const Step& step) {
  if (step.bias) binder.point(static_cast<const float * Call::*>(&Call::bias), step.bias);
  if (step.residual) binder.point(static_cast<const Item * Call::*>(&Call::residual), step.residual);
  binder.point(static_cast<Item * Call::*>(&Call::y), step.y);
}

}  // namespace lissome

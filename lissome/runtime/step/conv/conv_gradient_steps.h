// The gradients of convolutions, channels-last; see kernel/conv/conv_gradient.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// dx [batch, in channels, ...] = activation(gradient of the data from dy [batch, out channels, ...] + bias [in
// channels]): a transposed convolution. The weight is packed by pack_conv_f32 for it; `zeros` is [out channels].
struct ConvDataF32Step {
  static constexpr std::string_view kKernel = "conv_data_f32";
  Operand dy, weight;
  OptionalOperand bias;
  Operand zeros;
  Result dx;
  WindowFields window;  // slides over dx
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("dy", step.dy, {Dtype::f32}, ValueLayout::channels_last);
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("zeros", step.zeros, {Dtype::f32});
    fields.result("dx", step.dx, {Dtype::f32}, ValueLayout::channels_last);
    WindowFields::describe(step.window, fields);
    ActivationFields::describe(step.activation, fields);
  }
};

// dw [out channels, in channels / groups, (height,) width] from x [batch, in channels, ...] and dy [batch, out
// channels, ...]; with `splits` [splits, ...] pieces that add up to it.
struct ConvWeightValues {
  Operand x, dy;
  Result dw;
  WindowFields window;
  int64_t splits = 0;

  static constexpr int64_t kMostSplits = 64;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype dtype) {
    fields.operand("x", step.x, {dtype}, ValueLayout::channels_last);
    fields.operand("dy", step.dy, {dtype}, ValueLayout::channels_last);
    fields.result("dw", step.dw, {Dtype::f32});
    WindowFields::describe(step.window, fields);
    fields.integer("splits", step.splits, 0, kMostSplits);
  }
};

struct ConvWeightF32Step : ConvWeightValues {
  static constexpr std::string_view kKernel = "conv_weight_f32";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvWeightValues::describe(step, fields, Dtype::f32);
  }
};

struct ConvWeightBf16Step : ConvWeightValues {
  static constexpr std::string_view kKernel = "conv_weight_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvWeightValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

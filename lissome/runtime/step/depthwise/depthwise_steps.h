// Convolutions with a window a channel, plain and transposed, and with the product of pixels behind them; see
// kernel/depthwise. The weight is packed by pack_depthwise, in f32 for bf16 too: [taps * channels].
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

struct DepthwiseF32Step : ConvValues {
  static constexpr std::string_view kKernel = "depthwise_f32";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::f32}, {Dtype::f32}, {Dtype::f32}});
  }
};

struct DepthwiseBf16Step : ConvValues {
  static constexpr std::string_view kKernel = "depthwise_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::bf16}, {Dtype::f32}, {Dtype::bf16}});
  }
};

// The window slides over y.
struct DepthwiseTransposedF32Step : ConvValues {
  static constexpr std::string_view kKernel = "depthwise_transposed_f32";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::f32}, {Dtype::f32}, {Dtype::f32}});
  }
};

struct DepthwiseTransposedBf16Step : ConvValues {
  static constexpr std::string_view kKernel = "depthwise_transposed_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::bf16}, {Dtype::f32}, {Dtype::bf16}});
  }
};

// The activation behind the sums of the first of two convolutions.
struct FirstActivationFields : ActivationFields {
  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.text("first_activation", self.activation, is_known_activation);
    fields.any_number("first_alpha", self.alpha);
    fields.any_number("first_beta", self.beta);
  }
};

// A depthwise convolution of x with first_weight and first_bias, then the 1x1 convolution with `weight`, packed as that
// of linear_f32, bias and residual: what lies between is never written. The window is that of the first.
struct SeparableF32Step {
  static constexpr std::string_view kKernel = "separable_f32";
  Operand x, weight;
  OptionalOperand bias, residual;
  Operand first_weight;
  OptionalOperand first_bias;
  Result y;
  WindowFields window;
  ActivationFields activation;
  bool residual_last = false;  // the residual is added behind the activation
  FirstActivationFields first_activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32}, ValueLayout::channels_last);
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("residual", step.residual, {Dtype::f32}, ValueLayout::channels_last);
    fields.operand("first_weight", step.first_weight, {Dtype::f32});
    fields.operand("first_bias", step.first_bias, {Dtype::f32});
    fields.result("y", step.y, {Dtype::f32}, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
    ActivationFields::describe(step.activation, fields);
    fields.flag("residual_last", step.residual_last);
    FirstActivationFields::describe(step.first_activation, fields);
    fields.reuses(step.residual);
  }
};

}  // namespace lissome

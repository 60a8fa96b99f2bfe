// Convolutions of u8 images, channels-last, with packed weights of s8.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// What the convolutions below have in common. multiplier, weight_sums and bias are [out channels]; `border` [in
// channels] is what they read outside of x.
struct ConvU8S8Values {
  Operand x, weight, multiplier, weight_sums;
  OptionalOperand bias, residual;
  Result y;
  WindowFields window;
  QuantizedFields quantized;
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype weight) {
    constexpr DtypeSet kResults = {Dtype::f32, Dtype::bf16, Dtype::u8};
    fields.operand("x", step.x, {Dtype::u8}, ValueLayout::channels_last);
    fields.operand("weight", step.weight, {weight});
    fields.operand("multiplier", step.multiplier, {Dtype::f32});
    fields.operand("weight_sums", step.weight_sums, {Dtype::i32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("residual", step.residual, kResults, ValueLayout::channels_last);
    fields.result("y", step.y, kResults, ValueLayout::channels_last);
    WindowFields::describe(step.window, fields);
    QuantizedFields::describe(step.quantized, fields);
    QuantizedFields::describe_residual(step.quantized, fields);
    ActivationFields::describe(step.activation, fields);
    fields.reuses(step.residual);
  }
};

struct BorderedConvU8S8Values : ConvU8S8Values {
  Operand border;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype weight) {
    ConvU8S8Values::describe(step, fields, weight);
    fields.no_operand("row_scales");
    fields.no_operand("row_zeros");
    fields.operand("border", step.border, {Dtype::u8});
  }
};

// Any window. The weight is packed by pack_u8s8, a block a group.
struct ConvU8S8Step : BorderedConvU8S8Values {
  static constexpr std::string_view kKernel = "conv_u8s8";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    BorderedConvU8S8Values::describe(step, fields, Dtype::i8);
  }
};

// 3x3 windows of stride 1 by tiles of 4x4 (Lavin and Gray, arXiv:1509.09308).
struct WinogradU8S8Step : BorderedConvU8S8Values {
  static constexpr std::string_view kKernel = "winograd_u8s8";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    BorderedConvU8S8Values::describe(step, fields, Dtype::i16);
  }
};

// A window a channel.
struct DepthwiseU8S8Step : ConvU8S8Values {
  static constexpr std::string_view kKernel = "depthwise_u8s8";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvU8S8Values::describe(step, fields, Dtype::i8);
  }
};

// Transposed, with a stride of the kernel's size: a product of pixels, whose results spread over an image that is
// `kernel` times as large. multiplier, weight_sums and bias are repeated for each place of the window.
struct ConvTransposedU8S8Step {
  static constexpr std::string_view kKernel = "conv_transposed_u8s8";
  Operand x, weight, multiplier, weight_sums;
  OptionalOperand bias;
  Result y;
  std::vector<int64_t> kernel;
  QuantizedFields quantized;
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::u8}, ValueLayout::channels_last);
    fields.operand("weight", step.weight, {Dtype::i8});
    fields.operand("multiplier", step.multiplier, {Dtype::f32});
    fields.operand("weight_sums", step.weight_sums, {Dtype::i32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.result("y", step.y, {Dtype::f32, Dtype::bf16, Dtype::u8}, ValueLayout::channels_last);
    fields.integers("kernel", step.kernel, 1, kMostWindow, kRequired);
    QuantizedFields::describe(step.quantized, fields);
    ActivationFields::describe(step.activation, fields);
  }
};

// x f32 [batch, channels, ...] in row order as u8 with channels last: x * inverse + zero, rounded.
struct QuantizeImageStep {
  static constexpr std::string_view kKernel = "quantize_image";
  Operand x;
  Result y;
  double inverse = 0;
  int64_t zero = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32});
    fields.result("y", step.y, {Dtype::u8}, ValueLayout::channels_last);
    fields.number("inverse", step.inverse, -kAnyNumber, kAnyNumber);
    fields.integer("zero", step.zero, 0, 255, kRequired);
  }
};

}  // namespace lissome

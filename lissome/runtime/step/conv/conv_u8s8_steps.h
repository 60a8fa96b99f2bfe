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
// Case, n = 1..2 (1), c = 1..40 (64), h = 1..9 (56), w = 1..8 (56):
//   # A residual, and a result in u8.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @w1: i8[{c}, {c}, 3, 3]
//   parameter @s1: f32[{c}]
//   parameter @b1: f32[{c}]
//   %0: u8[{n}, {c}, {h}, {w}] = lissome::quantize(%x, 0.02, 120)
//   %1: u8[{n}, {c}, {h}, {w}] = lissome::conv_int8_u8(
//     %0, 0.02, 120, @w1, @s1, @b1, [1, 1], [1, 1], [1, 1], 1, "relu", %0, 0.05, 0, 0.1, 3)
//   %3: f32[{n}, {c}, {h}, {w}] = lissome::dequantize(%1, 0.05, 0)
//   return %3
// Case, n = 1..2 (1), g = 1..3 (2), c = 2..40 (32), k = 2..40 (64), h = 2..9 (56), w = 2..8 (56):
//   # Groups, a stride, and a result in f32.
//   input %x: u8[{n}, {g*c}, {h}, {w}]
//   parameter @w1: i8[{g*k}, {c}, 3, 3]
//   parameter @s1: f32[{g*k}]
//   %1: f32[{n}, {g*k}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     lissome::conv_int8(%x, 0.02, 120, @w1, @s1, none, [2, 2], [1, 1], [1, 1], {g}, "none", none)
//   return %1
// Case, n = 1..2 (1), c = 1..40 (64), k = 1..40 (64), h = 2..9 (56), w = 2..20 (56):
//   # Zeros below and right alone.
//   input %x: u8[{n}, {c}, {h}, {w}]
//   parameter @w1: i8[{k}, {c}, 3, 3]
//   parameter @s1: f32[{k}]
//   %1: f32[{n}, {k}, {h//2}, {w//2}] =
//     lissome::conv_int8(%x, 0.02, 120, @w1, @s1, none, [2, 2], [0, 0, 1, 1], [1, 1], 1, "none", none)
//   return %1
struct ConvU8S8Step : BorderedConvU8S8Values {
  static constexpr std::string_view kKernel = "conv_u8s8";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    BorderedConvU8S8Values::describe(step, fields, Dtype::i8);
  }
};

// Transposed, with a stride of the kernel's size: a product of pixels, whose results spread over an image that is
// `kernel` times as large. multiplier, weight_sums and bias are repeated for each place of the window.
// Case, n = 1..2 (1), c = 1..70 (64), k = 1..2 (2), h = 1..5 (28), w = 1..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @w3: i8[{c}, {32*k}, 2, 3]
//   parameter @s3: f32[{32*k}]
//   parameter @b3: f32[{32*k}]
//   %0: u8[{n}, {c}, {h}, {w}] = lissome::quantize(%x, 0.02, 120)
//   %4: f32[{n}, {32*k}, {2*h}, {3*w}] =
//     lissome::conv_transposed_int8(%0, 0.02, 120, @w3, @s3, @b3, "relu")
//   return %4
// Case, n = 1..2 (1), c = 1..70 (64), k = 1..2 (2), h = 1..5 (28), w = 1..6 (28):
//   input %x: u8[{n}, {c}, {h}, {w}]
//   parameter @w3: i8[{c}, {32*k}, 2, 2]
//   parameter @s3: f32[{32*k}]
//   %4: u8[{n}, {32*k}, {2*h}, {2*w}] =
//     lissome::conv_transposed_int8_u8(%x, 0.02, 120, @w3, @s3, none, "none", 0.5, 100)
//   return %4
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
// Case, n = 1..2 (1), c = 2..4 (3), k = 1..40 (32), h = 1..9 (224), w = 1..20 (224):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @w1: i8[{k}, {c}, 3, 3]
//   parameter @s1: f32[{k}]
//   parameter @b1: f32[{k}]
//   %0: u8[{n}, {c}, {h}, {w}] = lissome::quantize(%x, 0.02, 120)
//   %1: u8[{n}, {k}, {(h-1)//2+1}, {(w-1)//2+1}] = lissome::conv_int8_u8(
//     %0, 0.02, 120, @w1, @s1, @b1, [2, 2], [1, 1], [1, 1], 1, "relu", none, 0.05, 0)
//   %3: f32[{n}, {k}, {(h-1)//2+1}, {(w-1)//2+1}] = lissome::dequantize(%1, 0.05, 0)
//   return %3
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

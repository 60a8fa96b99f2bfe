// Products of rows of u8 with a packed weight of s8, and how rows become u8.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

inline constexpr DtypeSet kInt8Results = {Dtype::f32, Dtype::bf16, Dtype::u8};

// Rows of x [..., inputs] as u8, each with a scale and zero point of its own; `factors` [inputs] multiply x first.
// Case, rows = 1..9 (512), inputs = 1..70 (768), outputs = 1..40 (64):
//   input %x: f32[{rows}, {inputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: f32[{outputs}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_dynamic_int8(%x, @w, @s, none, "none", none)
//   return %y
// Case, rows = 1..9 (512), inputs = 1..70 (768), outputs = 1..40 (64):
//   # Factors multiply the columns first.
//   input %x: f32[{rows}, {inputs}]
//   parameter @factors: f32[{inputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: f32[{outputs}]
//   %0: f32[{rows}, {inputs}] = aten::mul.Tensor(%x, @factors)
//   %y: f32[{rows}, {outputs}] = lissome::linear_dynamic_int8(%0, @w, @s, none, "none", none)
//   return %y
// Case, rows = 1..9 (512), inputs = 1..70 (768), outputs = 1..40 (64):
//   input %x: f32[{rows}, {inputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: f32[{outputs}]
//   %0: bf16[{rows}, {inputs}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{rows}, {outputs}] = lissome::linear_dynamic_int8(%0, @w, @s, none, "relu", none)
//   return %y
struct QuantizeRowsStep {
  static constexpr std::string_view kKernel = "quantize_rows";
  Operand x;
  OptionalOperand factors;
  Result y, scales, zeros;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32, Dtype::bf16});
    fields.operand("factors", step.factors, {Dtype::f32, Dtype::bf16});
    fields.result("y", step.y, {Dtype::u8});
    fields.result("scales", step.scales, {Dtype::f32});
    fields.result("zeros", step.zeros, {Dtype::i32});
  }
};

// y [..., outputs] = activation(multiplier * (x weight^T - x_zero * weight_sums) + bias + residual). The weight is
// packed (pack_u8s8), multiplier, weight_sums and bias are [outputs]; row_scales and row_zeros, one number a row, come
// from quantize_rows and stand for x_zero and a part of the multiplier.
// Case, rows = 1..9 (64), inputs = 1..70 (768), outputs = 1..70 (768):
//   # Rows are quantized while the plan runs: scales and zero points by row.
//   input %x: f32[{rows}, {inputs}]
//   input %more: f32[{rows}, {outputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: f32[{outputs}]
//   parameter @b: f32[{outputs}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_dynamic_int8(%x, @w, @s, @b, "relu", %more)
//   return %y
// Case, rows = 1..9 (64), inputs = 1..70 (768), outputs = 1..70 (768):
//   # Scale and zero point are fixed, the result is u8.
//   input %x: f32[{rows}, {inputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: f32[{outputs}]
//   %q: u8[{rows}, {inputs}] = lissome::quantize(%x, 0.02, 120)
//   %y: u8[{rows}, {outputs}] =
//     lissome::linear_int8_u8(%q, 0.02, 120, @w, @s, none, "relu", none, 0.5, 100)
//   %z: f32[{rows}, {outputs}] = lissome::dequantize(%y, 0.5, 100)
//   return %z
// Case, inputs = 1..70 (2048), outputs = 1..70 (4096):
//   # One row, a result in f32.
//   input %x: u8[1, {inputs}]
//   input %more: f32[1, {outputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: f32[{outputs}]
//   parameter @b: f32[{outputs}]
//   %y: f32[1, {outputs}] = lissome::linear_int8(%x, 0.02, 120, @w, @s, @b, "none", %more)
//   return %y
struct LinearU8S8Step {
  static constexpr std::string_view kKernel = "linear_u8s8";
  Operand x, weight, multiplier, weight_sums;
  OptionalOperand bias, residual, row_scales, row_zeros;
  Result y;
  int64_t outputs = 0;
  QuantizedFields quantized;
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::u8});
    fields.operand("weight", step.weight, {Dtype::i8});
    fields.operand("multiplier", step.multiplier, {Dtype::f32});
    fields.operand("weight_sums", step.weight_sums, {Dtype::i32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("residual", step.residual, kInt8Results);
    fields.operand("row_scales", step.row_scales, {Dtype::f32});
    fields.operand("row_zeros", step.row_zeros, {Dtype::i32});
    fields.result("y", step.y, kInt8Results);
    fields.integer("outputs", step.outputs, 1, kMostOutputs, kRequired);
    QuantizedFields::describe(step.quantized, fields);
    QuantizedFields::describe_residual(step.quantized, fields);
    ActivationFields::describe(step.activation, fields);
    fields.reuses(step.residual);
  }
};

}  // namespace lissome

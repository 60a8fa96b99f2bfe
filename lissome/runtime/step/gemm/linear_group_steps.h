// Products of rows with a weight of 4 or 8 bits in groups of inputs, and how rows come into such groups.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// Rows of x [..., inputs] as s8, with a scale and the sum of the numbers for each group of 32 inputs.
// Case, rows = 1..9 (512), groups = 1..5 (128), outputs = 1..40 (64), inputs = groups*32:
//   input %x: f32[{rows}, {inputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: bf16[{outputs}, {groups}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_group(%x, @w, @s, none, "none", none)
//   return %y
struct QuantizeGroupsStep {
  static constexpr std::string_view kKernel = "quantize_groups";
  Operand x;
  Result y, scales, sums;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32});
    fields.result("y", step.y, {Dtype::i8});
    fields.result("scales", step.scales, {Dtype::f32});
    fields.result("sums", step.sums, {Dtype::i32});
  }
};

// y [..., outputs] = activation(x weight^T + bias + residual). x, its scales and sums come from quantize_groups; weight
// and weight_scales are packed (pack_group_weight, pack_group_scales).
// Case, rows = 1..9 (1), groups = 1..5 (128), outputs = 1..70 (4096), inputs = groups*32, bytes = groups*16:
//   # Four bits, two numbers in a byte.
//   input %x: f32[{rows}, {inputs}]
//   input %more: f32[{rows}, {outputs}]
//   parameter @w: u8[{outputs}, {bytes}]
//   parameter @s: bf16[{outputs}, {groups}]
//   parameter @b: f32[{outputs}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_group(%x, @w, @s, @b, "relu", %more)
//   return %y
// Case, rows = 1..9 (1), groups = 1..5 (128), outputs = 1..70 (4096), inputs = groups*32:
//   # Eight bits.
//   input %x: f32[{rows}, {inputs}]
//   parameter @w: i8[{outputs}, {inputs}]
//   parameter @s: bf16[{outputs}, {groups}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_group(%x, @w, @s, none, "none", none)
//   return %y
struct LinearGroupStep {
  static constexpr std::string_view kKernel = "linear_group";
  Operand x, x_scales, x_sums, weight, weight_scales;
  OptionalOperand bias, residual;
  Result y;
  int64_t outputs = 0, bits = 8;
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::i8});
    fields.operand("x_scales", step.x_scales, {Dtype::f32});
    fields.operand("x_sums", step.x_sums, {Dtype::i32});
    fields.operand("weight", step.weight, {Dtype::u8});
    fields.operand("weight_scales", step.weight_scales, {Dtype::bf16});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("residual", step.residual, {Dtype::f32});
    fields.result("y", step.y, {Dtype::f32});
    fields.integer("outputs", step.outputs, 1, kMostOutputs, kRequired);
    fields.integer("bits", step.bits, 4, 8, kRequired);
    ActivationFields::describe(step.activation, fields);
    fields.reuses(step.residual);
  }
};

}  // namespace lissome

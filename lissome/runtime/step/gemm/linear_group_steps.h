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

// The form of a packed weight.
struct GroupFields {
  int64_t bits = 8;           // 4 or 8
  int64_t scale_inputs = 32;  // inputs that share a scale: 32, 64 or 128

  template <typename Self, typename Fields>
  static void describe(Self& groups, Fields& fields) {
    fields.integer("bits", groups.bits, 4, 8, kRequired);
    fields.integer("scale_inputs", groups.scale_inputs, 32, 128, kRequired);
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
// Case, rows = 1..9 (1), groups = 1..3 (32), outputs = 1..70 (4096), inputs = groups*128:
//   # Eight bits, a scale for 128 inputs.
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
  int64_t outputs = 0;
  GroupFields groups;
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
    GroupFields::describe(step.groups, fields);
    ActivationFields::describe(step.activation, fields);
    fields.reuses(step.residual);
  }
};

// y [..., columns] = rows of a packed weight, for each of the indices [...].
// Case, rows = 4..40 (10000), groups = 1..3 (24), a = 1..5 (1), b = 1..9 (128), columns = groups*32:
//   input %ids: i64[{a}, {b}]
//   parameter @table: i8[{rows}, {columns}]
//   parameter @s: bf16[{rows}, {groups}]
//   %y: f32[{a}, {b}, {columns}] = lissome::embedding_group(@table, @s, %ids)
//   return %y
// Case, rows = 4..40 (10000), groups = 1..3 (24), n = 1..9 (128), columns = groups*32, bytes = groups*16:
//   # Four bits, in the weight of a linear layer; indices are i32.
//   input %ids: i64[{n}]
//   parameter @table: u8[{rows}, {bytes}]
//   parameter @s: bf16[{rows}, {groups}]
//   %small: i32[{n}] = aten::to.dtype(%ids, i32)
//   %0: f32[{n}, {columns}] = lissome::embedding_group(@table, @s, %small)
//   %1: f32[{n}, {rows}] = lissome::linear_group(%0, @table, @s, none, "none", none)
//   return %1
struct GatherGroupsStep {
  static constexpr std::string_view kKernel = "gather_groups";
  Operand table, scales, indices;
  Result y;
  int64_t rows = 0;
  GroupFields groups;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("table", step.table, {Dtype::u8});
    fields.operand("scales", step.scales, {Dtype::bf16});
    fields.operand("indices", step.indices, {Dtype::i64, Dtype::i32});
    fields.result("y", step.y, {Dtype::f32});
    fields.integer("rows", step.rows, 1, kMostOutputs, kRequired);
    GroupFields::describe(step.groups, fields);
  }
};

}  // namespace lissome

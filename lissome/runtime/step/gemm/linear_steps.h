// Products of rows with a packed weight.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [..., outputs] = activation(x weight^T + bias + residual); with `residual_last` the residual is added behind the
// activation. x is [..., inputs] and its leading dimensions are rows; the bias is [outputs], the residual as large as
// y.
struct LinearValues {
  Operand x, weight;
  OptionalOperand bias, residual;
  Result y;
  int64_t outputs = 0;
  ActivationFields activation;
  bool residual_last = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype dtype) {
    fields.operand("x", step.x, {dtype});
    fields.operand("weight", step.weight, {dtype});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("residual", step.residual, {dtype});
    fields.result("y", step.y, {dtype});
    fields.integer("outputs", step.outputs, 1, kMostOutputs, kRequired);
    ActivationFields::describe(step.activation, fields);
    fields.flag("residual_last", step.residual_last);
    fields.reuses(step.residual);
  }
};

// The weight is packed by pack_linear_f32.
// Case, rows = 1..9 (64), inputs = 1..40 (768), outputs = 1..70 (768):
//   input %x: f32[{rows}, {inputs}]
//   input %more: f32[{rows}, {outputs}]
//   parameter @w: f32[{outputs}, {inputs}]
//   parameter @b: f32[{outputs}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_act(%x, @w, @b, act="relu", residual=%more)
//   return %y
// Case, n = 1..3 (4), rows = 1..5 (16), inputs = 1..40 (768), outputs = 1..70 (768):
//   input %x: f32[{n}, {rows}, {inputs}]
//   parameter @w: f32[{outputs}, {inputs}]
//   %y: f32[{n}, {rows}, {outputs}] = aten::linear(%x, @w, none)
//   return %y
// Case, inputs = 1..70 (1024), outputs = 1..70 (2048):
//   # One row.
//   input %x: f32[1, {inputs}]
//   parameter @w: f32[{outputs}, {inputs}]
//   parameter @b: f32[{outputs}]
//   %y: f32[1, {outputs}] = lissome::linear_act(%x, @w, @b, act="none")
//   return %y
struct LinearF32Step : LinearValues {
  static constexpr std::string_view kKernel = "linear_f32";
  bool finite_weight = false;  // the weight holds neither infinity nor NaN

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    LinearValues::describe(step, fields, Dtype::f32);
    fields.flag("finite_weight", step.finite_weight);
  }
};

// The weight is packed by pack_linear_bf16; the bias is f32.
// Case, rows = 1..9 (64), inputs = 1..70 (768), outputs = 1..70 (768):
//   input %x: f32[{rows}, {inputs}]
//   parameter @w: bf16[{outputs}, {inputs}]
//   parameter @b: bf16[{outputs}]
//   %0: bf16[{rows}, {inputs}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{rows}, {outputs}] = lissome::linear_act(%0, @w, @b, act="relu")
//   return %y
// Case, n = 1..3 (4), rows = 1..5 (16), inputs = 1..70 (768):
//   input %x: f32[{n}, {rows}, {inputs}]
//   parameter @w: bf16[{inputs}, {inputs}]
//   %0: bf16[{n}, {rows}, {inputs}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {rows}, {inputs}] = lissome::linear_act(%0, @w, none, act="none", residual=%0)
//   return %y
// Case, inputs = 1..70 (1024), outputs = 1..70 (4096):
//   # One row.
//   input %x: f32[1, {inputs}]
//   parameter @w: bf16[{outputs}, {inputs}]
//   %0: bf16[1, {inputs}] = aten::to.dtype(%x, bf16)
//   %y: bf16[1, {outputs}] = aten::linear(%0, @w, none)
//   return %y
struct LinearBf16Step : LinearValues {
  static constexpr std::string_view kKernel = "linear_bf16";

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    LinearValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

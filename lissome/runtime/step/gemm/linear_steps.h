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
struct LinearBf16Step : LinearValues {
  static constexpr std::string_view kKernel = "linear_bf16";

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    LinearValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

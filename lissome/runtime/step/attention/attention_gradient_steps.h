// The gradient of attention, which computes the scores again from what the forward step read and gave.
#pragma once

#include "lissome/runtime/step/attention/attention_steps.h"

namespace lissome {

// y, dy [batch, heads, queries, value size] are of any strides but dense rows, `logarithms` [batch, heads, queries]
// those of the forward step. dq, dk, dv are as q, k and v, which have as many key heads as heads.
struct AttentionGradientValues : AttentionValues {
  Operand y, logarithms, dy;
  Result dq, dk, dv;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype dtype) {
    AttentionValues::describe_operands(step, fields, dtype);
    fields.operand("y", step.y, {dtype}, ValueLayout::dense_rows);
    fields.operand("logarithms", step.logarithms, {Dtype::f32});
    fields.operand("dy", step.dy, {dtype}, ValueLayout::dense_rows);
    fields.result("dq", step.dq, {dtype});
    fields.result("dk", step.dk, {dtype});
    fields.result("dv", step.dv, {dtype});
    AttentionFields::describe(step.form, fields);
  }
};

struct AttentionGradientStep : AttentionGradientValues {
  static constexpr std::string_view kKernel = "attention_gradient";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionGradientValues::describe(step, fields, Dtype::f32);
  }
};

struct AttentionGradientBf16Step : AttentionGradientValues {
  static constexpr std::string_view kKernel = "attention_gradient_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionGradientValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

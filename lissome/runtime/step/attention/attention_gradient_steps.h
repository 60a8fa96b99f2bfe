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

// Case, b = 1..2 (1), heads = 1..3 (8), rows = 2..37 (128), size = 1..40 (64):
//   input %q: f32[{b}, {heads}, {rows}, {size}]
//   input %k: f32[{b}, {heads}, {rows}, {size}]
//   input %v: f32[{b}, {heads}, {rows}, {size}]
//   input %dy: f32[{b}, {heads}, {rows}, {size}]
//   %y: f32[{b}, {heads}, {rows}, {size}], %sums: f32[{b}, {heads}, {rows}] =
//     aten::_scaled_dot_product_flash_attention_for_cpu(%q, %k, %v, is_causal=true)
//   %dq: f32[{b}, {heads}, {rows}, {size}], %dk: f32[{b}, {heads}, {rows}, {size}],
//     %dv: f32[{b}, {heads}, {rows}, {size}] =
//     aten::_scaled_dot_product_flash_attention_for_cpu_backward(%dy, %q, %k, %v, %y, %sums, 0.0, true)
//   return %y, %dq, %dk, %dv
// Case, heads = 1..5 (4), queries = 1..20 (128), keys = 2..37 (128), size = 1..40 (64):
//   # A mask that is added.
//   input %q: f32[3, {heads}, {queries}, {size}]
//   input %k: f32[3, {heads}, {keys}, {size}]
//   input %v: f32[3, {heads}, {keys}, {size}]
//   input %mask: f32[3, {heads}, {queries}, {keys}]
//   input %dy: f32[3, {heads}, {queries}, {size}]
//   %y: f32[3, {heads}, {queries}, {size}], %sums: f32[3, {heads}, {queries}] =
//     aten::_scaled_dot_product_flash_attention_for_cpu(%q, %k, %v, attn_mask=%mask)
//   %dq: f32[3, {heads}, {queries}, {size}], %dk: f32[3, {heads}, {keys}, {size}],
//     %dv: f32[3, {heads}, {keys}, {size}] =
//     aten::_scaled_dot_product_flash_attention_for_cpu_backward(
//     %dy, %q, %k, %v, %y, %sums, 0.0, false, attn_mask=%mask)
//   return %y, %dq, %dk, %dv
struct AttentionGradientStep : AttentionGradientValues {
  static constexpr std::string_view kKernel = "attention_gradient";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionGradientValues::describe(step, fields, Dtype::f32);
  }
};

// Case, b = 1..2 (1), heads = 1..3 (8), rows = 2..37 (128), size = 1..40 (64):
//   input %q32: f32[{b}, {heads}, {rows}, {size}]
//   input %k32: f32[{b}, {heads}, {rows}, {size}]
//   input %v32: f32[{b}, {heads}, {rows}, {size}]
//   input %dy32: f32[{b}, {heads}, {rows}, {size}]
//   %q: bf16[{b}, {heads}, {rows}, {size}] = aten::to.dtype(%q32, bf16)
//   %k: bf16[{b}, {heads}, {rows}, {size}] = aten::to.dtype(%k32, bf16)
//   %v: bf16[{b}, {heads}, {rows}, {size}] = aten::to.dtype(%v32, bf16)
//   %dy: bf16[{b}, {heads}, {rows}, {size}] = aten::to.dtype(%dy32, bf16)
//   %y: bf16[{b}, {heads}, {rows}, {size}], %sums: f32[{b}, {heads}, {rows}] =
//     aten::_scaled_dot_product_flash_attention_for_cpu(%q, %k, %v, is_causal=false)
//   %dq: bf16[{b}, {heads}, {rows}, {size}], %dk: bf16[{b}, {heads}, {rows}, {size}],
//     %dv: bf16[{b}, {heads}, {rows}, {size}] =
//     aten::_scaled_dot_product_flash_attention_for_cpu_backward(%dy, %q, %k, %v, %y, %sums, 0.0, false)
//   return %y, %dq, %dk, %dv
struct AttentionGradientBf16Step : AttentionGradientValues {
  static constexpr std::string_view kKernel = "attention_gradient_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    AttentionGradientValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

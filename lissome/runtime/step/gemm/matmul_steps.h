// Products of two computed matrices, many at once.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [batch..., rows, outputs] = activation(a b + bias + residual) of a [batch..., rows, inner] and b [batch..., inner,
// outputs] in any order; batch dimensions broadcast. With `linear` a is [..., inner], dense unless it is a matrix, and
// b a weight [outputs, inner] in any order, which is transposed. The bias is [outputs], the residual as large as y and
// of its dtype; with `residual_last` it is added behind the activation.
struct MatmulValues {
  Operand a, b;
  OptionalOperand bias, residual;
  Result y;
  bool linear = false;
  ActivationFields activation;
  bool residual_last = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, DtypeSet dtypes) {
    fields.operand("a", step.a, dtypes, ValueLayout::any);
    fields.operand("b", step.b, dtypes, ValueLayout::any);
    fields.operand("bias", step.bias, dtypes);
    fields.operand("residual", step.residual, dtypes);
    fields.result("y", step.y, dtypes);
    fields.flag("linear", step.linear);
    ActivationFields::describe(step.activation, fields);
    fields.flag("residual_last", step.residual_last);
    fields.reuses(step.residual);
  }
};

// Case, n = 1..3 (8), rows = 1..20 (128), inner = 1..40 (128), outputs = 1..37 (128):
//   input %a: f32[{n}, {rows}, {inner}]
//   input %b: f32[{n}, {inner}, {outputs}]
//   %y: f32[{n}, {rows}, {outputs}] = aten::matmul(%a, %b)
//   return %y
// Case, rows = 1..20 (256), inputs = 1..40 (512), outputs = 1..37 (256):
//   # The gradient of a weight: the left one is transposed; the second goes on from earlier sums.
//   input %x: f32[{rows}, {inputs}]
//   input %dy: f32[{rows}, {outputs}]
//   %turned: f32[{outputs}, {rows}] = aten::permute(%dy, [1, 0])
//   %dw: f32[{outputs}, {inputs}] = aten::mm(%turned, %x)
//   %more: f32[{outputs}, {inputs}] = lissome::add_products(%dw, %turned, %x)
//   return %more
// Case, b = 1..2 (2), heads = 1..3 (8), rows = 1..20 (128), inner = 1..40 (64), keys = 1..37 (128):
//   # The right one is transposed and the same for each batch.
//   input %a: f32[{b}, {heads}, {rows}, {inner}]
//   input %k: f32[1, {heads}, {keys}, {inner}]
//   %turned: f32[1, {heads}, {inner}, {keys}] = aten::transpose.int(%k, -2, -1)
//   %y: f32[{b}, {heads}, {rows}, {keys}] = aten::matmul(%a, %turned)
//   return %y
// Case, rows = 1..9 (64), inputs = 1..40 (768), outputs = 20..70 (768):
//   # A linear layer whose weight is computed.
//   input %x: f32[{rows}, {inputs}]
//   input %more: f32[{rows}, {outputs}]
//   input %w: f32[{outputs}, {inputs}]
//   input %bias: f32[{outputs}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_act(%x, %w, %bias, act="gelu", residual=%more)
//   return %y
struct MatmulF32Step : MatmulValues {
  static constexpr std::string_view kKernel = "matmul_f32";
  OptionalOperand start;  // earlier sums, as large as y, that the products go on from

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    MatmulValues::describe(step, fields, {Dtype::f32});
    fields.operand("start", step.start, {Dtype::f32});
    fields.reuses(step.start);
  }
};

// Each value is bf16, or f32 that is rounded as it is read.
// Case, n = 1..3 (8), rows = 1..20 (128), inner = 1..40 (128), outputs = 1..37 (128):
//   input %a32: f32[{n}, {rows}, {inner}]
//   input %b32: f32[{n}, {inner}, {outputs}]
//   %a: bf16[{n}, {rows}, {inner}] = aten::to.dtype(%a32, bf16)
//   %b: bf16[{n}, {inner}, {outputs}] = aten::to.dtype(%b32, bf16)
//   %y: bf16[{n}, {rows}, {outputs}] = aten::matmul(%a, %b)
//   return %y
// Case, rows = 1..9 (64), inputs = 1..70 (768), outputs = 1..70 (768):
//   # A linear layer of f32 numbers that are rounded as they are read.
//   input %x: f32[{rows}, {inputs}]
//   input %w: f32[{outputs}, {inputs}]
//   input %bias: f32[{outputs}]
//   %y: f32[{rows}, {outputs}] = lissome::linear_bf16(%x, %w, %bias, "relu", none, f32)
//   return %y
// Case, rows = 1..20 (256), inputs = 1..40 (512), outputs = 1..37 (256):
//   # The left one is transposed.
//   input %x32: f32[{rows}, {inputs}]
//   input %dy32: f32[{rows}, {outputs}]
//   %x: bf16[{rows}, {inputs}] = aten::to.dtype(%x32, bf16)
//   %dy: bf16[{rows}, {outputs}] = aten::to.dtype(%dy32, bf16)
//   %turned: bf16[{outputs}, {rows}] = aten::permute(%dy, [1, 0])
//   %dw: bf16[{outputs}, {inputs}] = aten::mm(%turned, %x)
//   return %dw
struct MatmulBf16Step : MatmulValues {
  static constexpr std::string_view kKernel = "matmul_bf16";

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    MatmulValues::describe(step, fields, {Dtype::bf16, Dtype::f32});
  }
};

}  // namespace lissome

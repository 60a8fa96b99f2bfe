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
struct MatmulBf16Step : MatmulValues {
  static constexpr std::string_view kKernel = "matmul_bf16";

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    MatmulValues::describe(step, fields, {Dtype::bf16, Dtype::f32});
  }
};

}  // namespace lissome

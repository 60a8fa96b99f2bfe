// Element-wise steps: a short program of instructions in one pass over memory; see kernel/elementwise/elementwise.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = what the last instruction of `program` gives. Operands, up to kElementOperands of them, broadcast to the sizes of
// y and are converted as they are loaded; the result is converted to the dtype of y, as a cast does it. One text an
// instruction,
//   "<operation> <target> <a> <b> <c> <alpha> <beta>",
// the operation by its name: "load 0 1 0 0 0 0" fills register 0 with operand 1. Registers hold f32, or with `integers`
// i64: then all dtypes are those of integers or flags, and alpha and beta are at most 2^24.
// Case, rows = 1..5 (512), columns = 1..70 (768):
//   dim n in {rows}..{rows+2}
//   input %x: f32[n, {columns}]
//   input %y: f32[n, 1]
//   %0: f32[n, {columns}] = aten::mul.Tensor(%x, %y)
//   %1: f32[n, {columns}] = aten::silu(%0)
//   return %1
// Case, rows = 1..5 (256), columns = 1..70 (768):
//   input %ids: i64[{rows}, {columns}]
//   %wide: i64[{rows}, {columns}] = aten::mul.Tensor(%ids, %ids)
//   %less: i64[{rows}, {columns}] = aten::sub.Tensor(%wide, 5, alpha=2)
//   %used: bool[{rows}, {columns}] = aten::ne.Scalar(%less, 3)
//   return %less, %used
// Case, n = 1..3 (4), c = 1..9 (64), h = 1..5 (56), w = 1..20 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %factor: f32[{c}, 1, 1]
//   parameter @slope: f32[{c}]
//   %0: f32[{n}, {c}, {h}, {w}] = aten::mul.Tensor(%x, %factor)
//   %1: f32[{n}, {c}, {h}, {w}] = aten::prelu(%0, @slope)
//   %2: f32[{n}, {c}, {h}, {w}] = aten::clamp(%1, -1.0, 1.0)
//   %3: bool[{n}, {c}, {h}, {w}] = aten::gt.Tensor(%x, %factor)
//   %4: f32[{n}, {c}, {h}, {w}] = aten::where.self(%3, %2, %1)
//   return %4
// Case, rows = 1..5 (512), columns = 1..70 (768):
//   # A gated layer in bf16; each half is read where it lies.
//   input %x: f32[{rows}, {2*columns}]
//   input %y: f32[{columns}]
//   %0: bf16[{rows}, {2*columns}] = aten::to.dtype(%x, bf16)
//   %1: bf16[{columns}] = aten::to.dtype(%y, bf16)
//   %2: bf16[{rows}, {columns}] = aten::glu(%0, 1)
//   %3: bf16[{rows}, {columns}] = aten::silu(%2)
//   %4: bf16[{rows}, {columns}] = aten::mul.Tensor(%3, %1)
//   return %4
// Case, rows = 1..5 (512), columns = 6..70 (768):
//   # GELU and its gradient.
//   input %x: f32[{rows}, {columns}]
//   input %dy: f32[{rows}, {columns}]
//   %y: f32[{rows}, {columns}] = aten::gelu(%x)
//   %dx: f32[{rows}, {columns}] = aten::gelu_backward(%dy, %x)
//   return %y, %dx
struct ElementwiseStep {
  static constexpr std::string_view kKernel = "elementwise";
  OperandList operands;
  Result y;
  std::vector<std::string> program;
  bool integers = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    constexpr DtypeSet kElements = {Dtype::u8,   Dtype::i8,  Dtype::i32, Dtype::i64,
                                    Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::boolean};
    fields.operand("operand", step.operands, kElements, ValueLayout::any);
    fields.result("y", step.y, kElements, ValueLayout::dense);
    fields.texts("program", step.program);
    fields.flag("integers", step.integers);
    fields.reuses(step.operands);
  }
};

// y = x, which may be of another dtype.
inline ElementwiseStep make_cast_step(PlanValueId x, PlanValueId y) {
  ElementwiseStep step;
  step.operands.values = {x};
  step.y = {y};
  step.program = {"load 0 0 0 0 0 0"};
  return step;
}

}  // namespace lissome

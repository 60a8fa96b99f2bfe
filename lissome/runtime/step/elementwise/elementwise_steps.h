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
inline ElementwiseStep make_cast_step(int x, int y) {
  ElementwiseStep step;
  step.operands.values = {x};
  step.y = {y};
  step.program = {"load 0 0 0 0 0 0"};
  return step;
}

}  // namespace lissome

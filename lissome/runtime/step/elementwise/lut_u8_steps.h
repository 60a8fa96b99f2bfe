// Any function of one byte, between layers in int8.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = table[x]. The table has 256 numbers; x and y are of the same sizes, dense in the same order.
struct LutU8Step {
  static constexpr std::string_view kKernel = "lut_u8";
  Operand x, table;
  Result y;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::u8}, ValueLayout::dense);
    fields.operand("table", step.table, {Dtype::u8});
    fields.result("y", step.y, {Dtype::u8}, ValueLayout::dense);
    fields.reuses(step.x);
  }
};

}  // namespace lissome

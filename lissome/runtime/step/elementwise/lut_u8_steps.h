// Any function of one byte, between layers in int8.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = table[x]. The table has 256 numbers; x and y are of the same sizes, dense in the same order.
// Case, rows = 1..5 (1024), columns = 1..300 (2048):
//   input %x: u8[{rows}, {columns}]
//   parameter @t: u8[256]
//   %y: u8[{rows}, {columns}] = lissome::lut_u8(%x, @t)
//   return %y
// Case, n = 1..3 (4), c = 1..70 (64), h = 1..5 (28), w = 1..4 (28):
//   # Of an image with channels last.
//   input %x: u8[{n}, {c}, {2*h}, {2*w}]
//   parameter @t: u8[256]
//   %1: u8[{n}, {c}, {h}, {w}] =
//     lissome::avg_pool2d_u8(%x, 0.02, 120, [2, 2], [], [0, 0], false, true, none, 0.03, 100)
//   %2: u8[{n}, {c}, {h}, {w}] = lissome::lut_u8(%1, @t)
//   return %2
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

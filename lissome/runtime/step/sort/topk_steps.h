// The best of each row; see kernel/sort.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// values, positions [..., count] = the `count` largest (or smallest) elements along the last dimension of x, the best
// first, and where they stand (aten::topk).
// Case, rows = 1..9 (256), count = 1..9 (5), more = 0..90 (995), columns = count+more:
//   # What stands at these positions is the same.
//   input %x: f32[{rows}, {columns}]
//   %values: f32[{rows}, {count}], %positions: i64[{rows}, {count}] = aten::topk(%x, {count})
//   %again: f32[{rows}, {count}] = aten::gather(%x, -1, %positions)
//   return %values, %again
// Case, n = 1..3 (4), rows = 1..5 (32), count = 1..70 (100), more = 0..70 (8300), columns = count+more:
//   # The smallest, of three dimensions.
//   input %x: f32[{n}, {rows}, {columns}]
//   %values: f32[{n}, {rows}, {count}], %positions: i64[{n}, {rows}, {count}] =
//     aten::topk(%x, {count}, -1, false)
//   %again: f32[{n}, {rows}, {count}] = aten::gather(%x, -1, %positions)
//   return %values, %again
struct TopkStep {
  static constexpr std::string_view kKernel = "topk";
  Operand x;
  Result values, positions;
  bool largest = true;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32});
    fields.leaves_open(step.x, {1, 2});
    fields.result("values", step.values, {Dtype::f32});
    fields.result("positions", step.positions, {Dtype::i64});
    fields.flag("largest", step.largest);
  }
};

}  // namespace lissome

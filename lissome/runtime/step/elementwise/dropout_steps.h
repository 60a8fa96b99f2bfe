// Dropout whose random numbers are counted; see kernel/elementwise/dropout.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = x / keep where a number of the stream, which follows from the seed alone, falls below `keep`, and x * 0
// elsewhere. y is of the dtype and sizes of x; the seed is one number.
// Case, rows = 1..9 (512), columns = 1..70 (768):
//   input %x: f32[{rows}, {columns}]
//   input %seed: i64[]
//   %y: f32[{rows}, {columns}] = lissome::dropout(%x, 0.75, %seed, 1)
//   return %y
// Case, rows = 1..9 (512), columns = 1..70 (768):
//   input %x: f32[{rows}, {columns}]
//   input %seed: i64[]
//   %narrow: bf16[{rows}, {columns}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{rows}, {columns}] = lissome::dropout(%narrow, 0.9, %seed, 7)
//   return %y
struct DropoutStep {
  static constexpr std::string_view kKernel = "dropout";
  Operand x, seed;
  Result y;
  double keep = 0;
  int64_t stream = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32, Dtype::bf16});
    fields.operand("seed", step.seed, {Dtype::i64});
    fields.result("y", step.y, {Dtype::f32, Dtype::bf16});
    fields.number("keep", step.keep, std::numeric_limits<double>::denorm_min(), 1, kRequired);
    fields.integer("stream", step.stream, INT64_MIN, INT64_MAX, kRequired);
    fields.reuses(step.x);
  }
};

}  // namespace lissome

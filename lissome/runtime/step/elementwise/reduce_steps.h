// Steps that go along dimensions of a value: reductions, the place of the largest, running sums.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

bool is_reduction(std::string_view word);

// sum, mean, norm (the root of the sum of squares), maximum or minimum over `count` dimensions of x from `first` on;
// y has as many elements as the others leave. x is dense in row order; with `channels_last` it is an image, channels
// last, and the dimensions are all of its height and width. y is of the dtype of x; sums are in f32.
// Case, n = 1..5 (16), c = 1..9 (64), h = 1..7 (56), w = 1..20 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %y: f32[{n}, {h}, {w}] = aten::mean.dim(%x, [1])
//   return %y
// Case, n = 1..5 (64), rows = 1..9 (64), columns = 1..70 (768):
//   input %x: f32[{n}, {rows}, {columns}]
//   %y: f32[{n}, {rows}] = aten::sum.dim_IntList(%x, [-1])
//   return %y
// Case, n = 1..3 (2), c = 1..40 (256), h = 1..5 (14), w = 1..6 (14):
//   # Of an image with channels last.
//   input %x: f32[{n}, {c}, {2*h}, {2*w}]
//   %p: f32[{n}, {c}, {h}, {w}] = aten::max_pool2d(%x, [2, 2])
//   %y: f32[{n}, {c}, 1, 1] = aten::adaptive_avg_pool2d(%p, [1, 1])
//   return %y
// Case, n = 1..5 (16), rows = 1..9 (64), columns = 1..40 (768):
//   input %x: f32[{n}, {rows}, {columns}]
//   %narrow: bf16[{n}, {rows}, {columns}] = aten::to.dtype(%x, bf16)
//   %high: bf16[{n}] = aten::amax(%narrow, [1, 2])
//   %low: bf16[{rows}, {columns}] = aten::amin(%narrow, [0])
//   return %high, %low
// Case, rows = 1..9 (2048), columns = 1..70 (1000):
//   input %x: f32[{rows}, {columns}]
//   %norm: f32[{rows}, 1] = aten::linalg_vector_norm(%x, 2, [1], true)
//   %all: f32[] = aten::linalg_vector_norm(%x)
//   return %norm, %all
struct ReduceStep {
  static constexpr std::string_view kKernel = "reduce";
  Operand x;
  Result y;
  std::string reduction = "sum";
  int64_t first = 0, count = 0;
  bool channels_last = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32, Dtype::bf16}, ValueLayout::dense);
    fields.leaves_open(step.x, {1, 2, 3});
    fields.result("y", step.y, {Dtype::f32, Dtype::bf16});
    fields.text("reduction", step.reduction, is_reduction);
    fields.integer("first", step.first, 0, kMostDimension, kRequired);
    fields.integer("count", step.count, 1, kMostDimension + 1, kRequired);
    fields.flag("channels_last", step.channels_last);
  }
};

// Where the largest along `dim` stands: the first of several, or the first NaN (aten::argmax).
// Case, n = 1..5 (32), rows = 1..9 (21), columns = 1..40 (1024):
//   input %x: f32[{n}, {rows}, {columns}]
//   %best: i64[{n}, {columns}] = aten::argmax(%x, 1)
//   return %best
// Case, rows = 1..9 (256), columns = 1..70 (1000):
//   input %x: f32[{rows}, {columns}]
//   %best: i64[{rows}, 1] = aten::argmax(%x, -1, true)
//   return %best
struct FindLargestStep {
  static constexpr std::string_view kKernel = "find_largest";
  Operand x;
  Result positions;
  int64_t dim = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32});
    fields.leaves_open(step.x, {1});
    fields.result("positions", step.positions, {Dtype::i64});
    fields.integer("dim", step.dim, 0, kMostDimension, kRequired);
  }
};

// y[k] = x[0] + ... + x[k] along `dim`, of the dtype and sizes of x (aten::cumsum).
// Case, rows = 1..9 (512), columns = 1..70 (1024):
//   input %ids: i64[{rows}, {columns}]
//   %sums: i64[{rows}, {columns}] = aten::cumsum(%ids, 1)
//   return %sums
// Case, rows = 1..9 (512), columns = 1..70 (1024):
//   input %x: f32[{rows}, {columns}]
//   %sums: f32[{rows}, {columns}] = aten::cumsum(%x, 0)
//   return %sums
struct CumulateStep {
  static constexpr std::string_view kKernel = "cumulate";
  Operand x;
  Result y;
  int64_t dim = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32, Dtype::i64});
    fields.result("y", step.y, {Dtype::f32, Dtype::i64});
    fields.integer("dim", step.dim, 0, kMostDimension, kRequired);
    fields.reuses(step.x);
  }
};

}  // namespace lissome

// Steps that go along dimensions of a value: reductions, the place of the largest, running sums.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

bool is_reduction(std::string_view word);

// sum, mean, norm (the root of the sum of squares), maximum or minimum over `count` dimensions of x from `first` on;
// y has as many elements as the others leave. x is dense in row order; with `channels_last` it is an image, channels
// last, and the dimensions are all of its height and width. y is of the dtype of x; sums are in f32.
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
    fields.result("y", step.y, {Dtype::f32, Dtype::bf16});
    fields.text("reduction", step.reduction, is_reduction);
    fields.integer("first", step.first, 0, kMostDimension, kRequired);
    fields.integer("count", step.count, 1, kMostDimension + 1, kRequired);
    fields.flag("channels_last", step.channels_last);
  }
};

// Where the largest along `dim` stands: the first of several, or the first NaN (aten::argmax).
struct FindLargestStep {
  static constexpr std::string_view kKernel = "find_largest";
  Operand x;
  Result positions;
  int64_t dim = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32});
    fields.result("positions", step.positions, {Dtype::i64});
    fields.integer("dim", step.dim, 0, kMostDimension, kRequired);
  }
};

// y[k] = x[0] + ... + x[k] along `dim`, of the dtype and sizes of x (aten::cumsum).
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

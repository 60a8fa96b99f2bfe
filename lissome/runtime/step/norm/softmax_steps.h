// Softmax over the last dimension, or over the channels of images, which lie last in memory.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = exp(x) / sum(exp(x)), or with `logarithm` its logarithm. x and y are rows; with `channels` [batch, channels,
// height, width] with channels last, over channels. With `zero_unseen` a row of nothing but -inf gives zeros.
// Case, rows = 1..9 (1024), columns = 1..70 (1000):
//   input %x: f32[{rows}, {columns}]
//   %y: f32[{rows}, {columns}] = aten::softmax.int(%x, -1)
//   return %y
// Case, n = 1..3 (2), c = 1..40 (21), h = 1..5 (64), w = 1..6 (64):
//   # Over the channels of images.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %y: f32[{n}, {c}, {h}, {w}] = aten::softmax.int(%x, 1)
//   return %y
// Case, rows = 1..9 (1024), columns = 1..70 (1000):
//   input %x: f32[{rows}, {columns}]
//   %y: f32[{rows}, {columns}] = aten::log_softmax.int(%x, -1)
//   return %y
// Case, heads = 1..3 (8), rows = 1..9 (128), columns = 1..40 (128):
//   # Rows of which nothing is seen give zeros.
//   input %x: f32[{heads}, {rows}, {columns}]
//   input %hides: f32[{rows}, {columns}]
//   %hidden: bool[{rows}, {columns}] = aten::lt.Scalar(%hides, 0.5)
//   %seen: f32[{heads}, {rows}, {columns}] = aten::masked_fill.Scalar(%x, %hidden, -inf)
//   %y: f32[{heads}, {rows}, {columns}] = aten::_safe_softmax(%seen, -1)
//   return %y
struct SoftmaxStep {
  static constexpr std::string_view kKernel = "softmax";
  Operand x;
  Result y;
  bool channels = false, logarithm = false, zero_unseen = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32}, ValueLayout::dense);
    fields.result("y", step.y, {Dtype::f32}, ValueLayout::dense);
    fields.flag("channels", step.channels);
    fields.flag("logarithm", step.logarithm);
    fields.flag("zero_unseen", step.zero_unseen);
    fields.reuses(step.x);
  }
};

// Softmax of rows of bf16, computed in f32, over the last dimension.
// Case, rows = 1..9 (1024), columns = 1..70 (1000):
//   input %x: f32[{rows}, {columns}]
//   %0: bf16[{rows}, {columns}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{rows}, {columns}] = aten::softmax.int(%0, -1)
//   return %y
// Case, rows = 1..9 (512), columns = 1..70 (768):
//   # Behind a layer norm.
//   input %x: f32[{rows}, {columns}]
//   parameter @n: bf16[{columns}]
//   parameter @b: bf16[{columns}]
//   %0: bf16[{rows}, {columns}] = aten::to.dtype(%x, bf16)
//   %2: bf16[{rows}, {columns}] = aten::layer_norm(%0, [{columns}], @n, @b)
//   %3: bf16[{rows}, {columns}] = aten::softmax.int(%2, -1)
//   return %3
struct SoftmaxBf16Step {
  static constexpr std::string_view kKernel = "softmax_bf16";
  Operand x;
  Result y;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::bf16});
    fields.result("y", step.y, {Dtype::bf16});
    fields.reuses(step.x);
  }
};

}  // namespace lissome

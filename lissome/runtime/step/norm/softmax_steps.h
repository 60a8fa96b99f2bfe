// Softmax over the last dimension, or over the channels of images, which lie last in memory.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = exp(x) / sum(exp(x)), or with `logarithm` its logarithm. x and y are rows; with `channels` [batch, channels,
// height, width] with channels last, over channels. With `zero_unseen` a row of nothing but -inf gives zeros.
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

// Pools of channels-last images, and the training forms of max pools; see kernel/pool.
#pragma once

#include "lissome/runtime/step/pool/average_fields.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [batch, channels, (height,) width] = the largest number in each window of x, or their average; x and y are of the
// same dtype. Averages are not of u8.
struct PoolStep {
  static constexpr std::string_view kKernel = "pool";
  Operand x;
  Result y;
  WindowFields window;
  AverageFields divisor;
  bool average = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    constexpr DtypeSet kImages = {Dtype::f32, Dtype::bf16, Dtype::u8};
    fields.operand("x", step.x, kImages, ValueLayout::channels_last);
    fields.result("y", step.y, kImages, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
    AverageFields::describe(step.divisor, fields);
    fields.flag("average", step.average);
  }
};

// The same maximum with where it stands: `indices` is as y, of the window's taps, counted row by row.
struct MaxPoolIndicesStep {
  static constexpr std::string_view kKernel = "max_pool_indices";
  Operand x;
  Result y, indices;
  WindowFields window;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    constexpr DtypeSet kImages = {Dtype::f32, Dtype::bf16};
    fields.operand("x", step.x, kImages, ValueLayout::channels_last);
    fields.result("y", step.y, kImages, ValueLayout::channels_last);
    fields.result("indices", step.indices, {Dtype::u8}, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
  }
};

// dx: each number is the sum of dy of the windows whose largest it was.
struct MaxPoolGradientStep {
  static constexpr std::string_view kKernel = "max_pool_gradient";
  Operand dy, indices;
  Result dx;
  WindowFields window;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    constexpr DtypeSet kImages = {Dtype::f32, Dtype::bf16};
    fields.operand("dy", step.dy, kImages, ValueLayout::channels_last);
    fields.operand("indices", step.indices, {Dtype::u8}, ValueLayout::channels_last);
    fields.result("dx", step.dx, kImages, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
  }
};

}  // namespace lissome

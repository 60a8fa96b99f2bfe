// Pools of channels-last images, and the training forms of max pools; see kernel/pool.
#pragma once

#include "lissome/runtime/step/pool/average_fields.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [batch, channels, (height,) width] = the largest number in each window of x, or their average; x and y are of the
// same dtype. Averages are not of u8.
// Case, n = 1..3 (2), c = 1..40 (64), h = 3..9 (56), w = 3..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %y: f32[{n}, {c}, {(h-1)//2+1}, {(w-1)//2+1}] = aten::max_pool2d(%x, [3, 3], [2, 2], [1, 1])
//   return %y
// Case, n = 1..3 (4), c = 1..40 (64), h = 1..5 (28), w = 1..4 (28):
//   input %x: f32[{n}, {c}, {2*h}, {2*w}]
//   %y: f32[{n}, {c}, {h}, {w}] = aten::avg_pool2d(%x, [2, 2])
//   return %y
// Case, n = 1..3 (4), c = 1..70 (64), h = 2..9 (56), w = 2..8 (56):
//   input %x: u8[{n}, {c}, {h}, {w}]
//   %y: u8[{n}, {c}, {(h-1)//2+1}, {(w-1)//2+1}] = lissome::max_pool2d_u8(%x, [3, 3], [2, 2], [1, 1])
//   return %y
// Case, n = 1..3 (4), c = 1..40 (64), h = 2..9 (28), w = 2..8 (28):
//   # In bf16, without the padding in the averages.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %image: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {c}, {h}, {w}] = aten::avg_pool2d(%image, [3, 3], [1, 1], [1, 1], false, false)
//   return %y
// Case, n = 1..3 (4), c = 1..40 (64), w = 5..40 (1000):
//   input %x: f32[{n}, {c}, {w}]
//   %y: f32[{n}, {c}, {w-4}] = aten::max_pool1d(%x, [3], [1], [0], [2])
//   return %y
// Case, n = 1..3 (4), c = 1..40 (64), h = 1..12 (57), w = 1..12 (61), a = 1..7 (7), b = 1..7 (9):
//   # Windows that share x out.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %y: f32[{n}, {c}, {a}, {b}], %i: i64[{n}, {c}, {a}, {b}] = aten::adaptive_max_pool2d(%x, [{a}, {b}])
//   return %y
// Case, n = 1..3 (4), c = 1..40 (64), h = 2..12 (57), w = 1..12 (61), a = 2..7 (7), b = 1..7 (9):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %wide: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {c}, {a}, {b}] = aten::adaptive_avg_pool2d(%wide, [{a}, {b}])
//   return %y
struct PoolStep {
  static constexpr std::string_view kKernel = "pool";
  Operand x;
  Result y;
  WindowFields window;
  AverageFields divisor;
  bool average = false;
  bool adaptive = false;  // windows share x out among the elements of y (aten::adaptive_avg_pool2d)

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    constexpr DtypeSet kImages = {Dtype::f32, Dtype::bf16, Dtype::u8};
    fields.operand("x", step.x, kImages, ValueLayout::channels_last);
    fields.result("y", step.y, kImages, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
    AverageFields::describe(step.divisor, fields);
    fields.flag("average", step.average);
    fields.flag("adaptive", step.adaptive);
  }
};

// The same maximum with where it stands: `indices` is as y, of the window's taps, counted row by row.
// Case, n = 1..3 (1), c = 1..40 (64), h = 3..17 (56), w = 3..8 (56), oh = (h-1)//2+1, ow = (w-1)//2+1:
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %p: f32[{n}, {c}, {oh}, {ow}], %i: i64[{n}, {c}, {oh}, {ow}] =
//     aten::max_pool2d_with_indices(%x, [3, 3], [2, 2], [1, 1])
//   %dx: f32[{n}, {c}, {h}, {w}] =
//     aten::max_pool2d_with_indices_backward(%p, %x, [3, 3], [2, 2], [1, 1], [1, 1], false, %i)
//   return %p, %dx
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
// Case, n = 1..3 (1), c = 1..40 (64), h = 3..17 (56), w = 3..8 (56), oh = (h-1)//2+1, ow = (w-1)//2+1:
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %d: f32[{n}, {c}, {oh}, {ow}]
//   %p: f32[{n}, {c}, {oh}, {ow}], %i: i64[{n}, {c}, {oh}, {ow}] =
//     aten::max_pool2d_with_indices(%x, [3, 3], [2, 2], [1, 1])
//   %dx: f32[{n}, {c}, {h}, {w}] =
//     aten::max_pool2d_with_indices_backward(%d, %x, [3, 3], [2, 2], [1, 1], [1, 1], false, %i)
//   return %p, %dx
// Case, n = 1..3 (2), c = 1..40 (64), h = 1..5 (28), w = 1..4 (28):
//   input %x32: f32[{n}, {c}, {2*h}, {2*w}]
//   input %d32: f32[{n}, {c}, {h}, {w}]
//   %x: bf16[{n}, {c}, {2*h}, {2*w}] = aten::to.dtype(%x32, bf16)
//   %d: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%d32, bf16)
//   %p: bf16[{n}, {c}, {h}, {w}], %i: i64[{n}, {c}, {h}, {w}] = aten::max_pool2d_with_indices(%x, [2, 2])
//   %dx: bf16[{n}, {c}, {2*h}, {2*w}] =
//     aten::max_pool2d_with_indices_backward(%d, %x, [2, 2], [2, 2], [0, 0], [1, 1], false, %i)
//   return %p, %dx
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

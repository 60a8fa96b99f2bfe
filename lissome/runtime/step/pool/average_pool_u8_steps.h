// Average pooling of channels-last bytes, between layers in int8.
#pragma once

#include "lissome/runtime/step/pool/average_fields.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [batch, channels, (height,) width], u8 = sum * (x_scale / divisor) * out_inverse + out_zero, rounded, with the sum
// of x - x_zero over each window; outside of x lies the number 0. `out_inverse` is 1 / scale of y. A window has at most
// kAveragedBytes elements (kernel/pool/average_pool_u8.h).
// Case, n = 1..3 (4), c = 1..70 (64), h = 1..5 (28), w = 1..4 (28):
//   input %x: u8[{n}, {c}, {2*h}, {2*w}]
//   %y: u8[{n}, {c}, {h}, {w}] =
//     lissome::avg_pool2d_u8(%x, 0.02, 120, [2, 2], [], [0, 0], false, true, none, 0.03, 100)
//   return %y
// Case, n = 1..3 (4), c = 1..70 (64), h = 2..9 (56), w = 2..8 (56):
//   # Without the padding in the averages.
//   input %x: u8[{n}, {c}, {h}, {w}]
//   %y: u8[{n}, {c}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     lissome::avg_pool2d_u8(%x, 0.02, 120, [3, 3], [2, 2], [1, 1], false, false, none, 0.02, 110)
//   return %y
struct AveragePoolU8Step {
  static constexpr std::string_view kKernel = "average_pool_u8";
  Operand x;
  Result y;
  WindowFields window;
  AverageFields divisor;
  double x_scale = 0;
  int64_t x_zero = 0;
  double out_inverse = 0;
  int64_t out_zero = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::u8}, ValueLayout::channels_last);
    fields.result("y", step.y, {Dtype::u8}, ValueLayout::channels_last);
    WindowFields::describe_pool(step.window, fields);
    AverageFields::describe(step.divisor, fields);
    fields.number("x_scale", step.x_scale, -kAnyNumber, kAnyNumber);
    fields.integer("x_zero", step.x_zero, 0, 255);
    fields.number("out_inverse", step.out_inverse, -kAnyNumber, kAnyNumber);
    fields.integer("out_zero", step.out_zero, 0, 255);
  }
};

}  // namespace lissome

// Average pooling of channels-last bytes, between layers in int8.
#pragma once

#include "lissome/runtime/step/pool/average_fields.h"
#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y [batch, channels, (height,) width], u8 = sum * (x_scale / divisor) * out_inverse + out_zero, rounded, with the sum
// of x - x_zero over each window; outside of x lies the number 0. `out_inverse` is 1 / scale of y. A window has at most
// kAveragedBytes elements (kernel/pool/average_pool_u8.h).
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

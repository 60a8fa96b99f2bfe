// Images [batch, channels, height, width], channels last, at another size.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// The nearest pixel, or bilinear between four, as torch.nn.functional.interpolate; InterpolateShape says where a pixel
// lies in x. Scales are inputs per output; 0: they follow from the sizes.
struct InterpolateValues {
  static constexpr double kLargestScale = 1 << 20;
  Operand x;
  Result y;
  bool bilinear = false, aligned_corners = false;
  double scale_height = 0, scale_width = 0;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype dtype) {
    fields.operand("image", step.x, {dtype}, ValueLayout::channels_last);
    fields.result("image", step.y, {dtype}, ValueLayout::channels_last);
    fields.flag("bilinear", step.bilinear);
    fields.flag("aligned_corners", step.aligned_corners);
    fields.number("scale_height", step.scale_height, 0, kLargestScale);
    fields.number("scale_width", step.scale_width, 0, kLargestScale);
  }
};

struct InterpolateStep : InterpolateValues {
  static constexpr std::string_view kKernel = "interpolate";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    InterpolateValues::describe(step, fields, Dtype::f32);
  }
};

// Between pixels in f32.
struct InterpolateBf16Step : InterpolateValues {
  static constexpr std::string_view kKernel = "interpolate_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    InterpolateValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

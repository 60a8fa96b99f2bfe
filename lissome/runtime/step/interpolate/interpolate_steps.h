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
    fields.leaves_open(step.x, {2, 3});
    fields.result("image", step.y, {dtype}, ValueLayout::channels_last);
    fields.leaves_open(step.y, {2, 3});
    fields.flag("bilinear", step.bilinear);
    fields.flag("aligned_corners", step.aligned_corners);
    fields.number("scale_height", step.scale_height, 0, kLargestScale);
    fields.number("scale_width", step.scale_width, 0, kLargestScale);
  }
};

// Case, n = 1..2 (1), c = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %large: f32[{n}, {c}, {2*h}, {2*w}] = aten::upsample_bilinear2d.vec(%x, none, false, [2.0, 2.0])
//   return %large
// Case, n = 1..2 (1), c = 1..20 (64), h = 1..5 (28), w = 1..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %large: f32[{n}, {c}, {2*h}, {2*w}] = aten::upsample_nearest2d.vec(%x, none, [2.0, 2.0])
//   return %large
// Case, n = 1..2 (1), c = 1..20 (64), h = 1..9 (56), w = 1..8 (56), oh = 1..12 (40), ow = 1..12 (72):
//   # To any size, corner to corner.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %y: f32[{n}, {c}, {oh}, {ow}] = aten::upsample_bilinear2d.vec(%x, [{oh}, {ow}], true, none)
//   return %y
struct InterpolateStep : InterpolateValues {
  static constexpr std::string_view kKernel = "interpolate";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    InterpolateValues::describe(step, fields, Dtype::f32);
  }
};

// Between pixels in f32.
// Case, n = 1..2 (1), c = 1..40 (64), h = 1..5 (28), w = 1..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %image: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %large: bf16[{n}, {c}, {2*h}, {2*w}] = aten::upsample_nearest2d.vec(%image, none, [2.0, 2.0])
//   return %large
// Case, n = 1..2 (1), c = 1..40 (64), h = 1..9 (56), w = 1..8 (56), oh = 1..12 (40), ow = 1..12 (72):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   %image: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {c}, {oh}, {ow}] = aten::upsample_bilinear2d.vec(%image, [{oh}, {ow}], false, none)
//   return %y
struct InterpolateBf16Step : InterpolateValues {
  static constexpr std::string_view kKernel = "interpolate_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    InterpolateValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

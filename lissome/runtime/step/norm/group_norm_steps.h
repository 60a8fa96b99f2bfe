// Group norm of images, channels last (Wu and He, arXiv:1803.08494).
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// y = activation((x - mean) / sqrt(variance + epsilon) * weight + bias) of x [batch, channels, ...] with at most three
// further dimensions. Mean and variance are those of the channels / groups channels of a group; weight and bias
// [channels] are 1 and 0 where they are not given.
struct GroupNormValues {
  Operand x;
  OptionalOperand weight, bias;
  Result y;
  int64_t groups = 0;
  double epsilon = 0;
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype dtype) {
    fields.operand("x", step.x, {dtype}, ValueLayout::channels_last);
    fields.operand("weight", step.weight, {dtype});
    fields.operand("bias", step.bias, {dtype});
    fields.result("image", step.y, {dtype}, ValueLayout::channels_last);
    fields.integer("groups", step.groups, 1, kMostGroups, kRequired);
    fields.any_number("epsilon", step.epsilon);
    ActivationFields::describe(step.activation, fields);
    fields.reuses(step.x);
  }
};

// Case, n = 1..3 (2), g = 1..5 (32), c = 1..9 (4), h = 2..5 (28), w = 2..6 (28):
//   input %image: f32[{n}, {g*c}, {h}, {w}]
//   parameter @c: f32[{g*c}]
//   parameter @d: f32[{g*c}]
//   %group: f32[{n}, {g*c}, {h}, {w}] = aten::group_norm(%image, {g}, @c, @d)
//   %bent: f32[{n}, {g*c}, {h}, {w}] = aten::silu(%group)
//   return %bent
// Case, n = 1..3 (2), c = 1..40 (64), h = 2..5 (56), w = 1..6 (56):
//   input %image: f32[{n}, {c}, {h}, {w}]
//   %y: f32[{n}, {c}, {h}, {w}] = aten::instance_norm(%image, none, none, none, none, true, 0.1, 1e-05, false)
//   return %y
struct GroupNormStep : GroupNormValues {
  static constexpr std::string_view kKernel = "group_norm";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    GroupNormValues::describe(step, fields, Dtype::f32);
  }
};

// Case, n = 1..3 (2), g = 1..5 (32), c = 1..9 (4), h = 2..5 (28), w = 2..6 (28):
//   input %x: f32[{n}, {g*c}, {h}, {w}]
//   parameter @c: bf16[{g*c}]
//   parameter @d: bf16[{g*c}]
//   %image: bf16[{n}, {g*c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %group: bf16[{n}, {g*c}, {h}, {w}] = aten::group_norm(%image, {g}, @c, @d)
//   return %group
struct GroupNormBf16Step : GroupNormValues {
  static constexpr std::string_view kKernel = "group_norm_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    GroupNormValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

// The gradients of convolutions, channels-last; see kernel/conv/conv_gradient.h.
#pragma once

#include "lissome/runtime/step/step_groups.h"

namespace lissome {

// dx [batch, in channels, ...] = activation(gradient of the data from dy [batch, out channels, ...] + bias [in
// channels]): a transposed convolution. The weight is packed by pack_conv_f32 for it; `zeros` is [out channels].
// Case, n = 1..2 (1), c = 1..20 (64), k = 1..35 (64), h = 2..9 (56), w = 2..8 (56), oh = (h-1)//2+1, ow = (w-1)//2+1:
//   input %w: f32[{k}, {c}, 3, 3]
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %dy: f32[{n}, {k}, {oh}, {ow}]
//   %dx: f32[{n}, {c}, {h}, {w}], %dw: none, %db: none = aten::convolution_backward(
//     %dy, %x, %w, [0], [2, 2], [1, 1], [1, 1], false, [0, 0], 1, [true, false, false])
//   return %dx
// Case, n = 1..2 (1), g = 2..4 (2), c = 2..20 (32), k = 1..20 (32), h = 1..5 (28), w = 1..6 (28):
//   # A transposed convolution in groups.
//   input %x: f32[{n}, {g*c}, {h}, {w}]
//   parameter @g: f32[{g*c}, {k}, 2, 2]
//   parameter @b: f32[{g*k}]
//   %y: f32[{n}, {g*k}, {2*h}, {2*w}] = aten::convolution(%x, @g, @b, [2, 2], [0, 0], [1, 1], true, [0, 0], {g})
//   return %y
struct ConvDataF32Step {
  static constexpr std::string_view kKernel = "conv_data_f32";
  Operand dy, weight;
  OptionalOperand bias;
  Operand zeros;
  Result dx;
  WindowFields window;  // slides over dx
  ActivationFields activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("dy", step.dy, {Dtype::f32}, ValueLayout::channels_last);
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("zeros", step.zeros, {Dtype::f32});
    fields.result("dx", step.dx, {Dtype::f32}, ValueLayout::channels_last);
    WindowFields::describe(step.window, fields);
    ActivationFields::describe(step.activation, fields);
  }
};

// dw [out channels, in channels / groups, (height,) width] from x [batch, in channels, ...] and dy [batch, out
// channels, ...]; with `splits` [splits, ...] pieces that add up to it.
struct ConvWeightValues {
  Operand x, dy;
  Result dw;
  WindowFields window;
  int64_t splits = 0;

  static constexpr int64_t kMostSplits = 64;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields, Dtype dtype) {
    fields.operand("x", step.x, {dtype}, ValueLayout::channels_last);
    fields.operand("dy", step.dy, {dtype}, ValueLayout::channels_last);
    fields.result("dw", step.dw, {Dtype::f32});
    WindowFields::describe(step.window, fields);
    fields.integer("splits", step.splits, 0, kMostSplits);
  }
};

// Case, n = 1..2 (1), c = 1..20 (64), k = 1..35 (64), h = 2..9 (56), w = 2..8 (56), oh = (h-1)//2+1, ow = (w-1)//2+1:
//   # All gradients.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %w: f32[{k}, {c}, 3, 3]
//   input %bias: f32[{k}]
//   %y: f32[{n}, {k}, {oh}, {ow}] = aten::convolution(%x, %w, %bias, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
//   %dx: f32[{n}, {c}, {h}, {w}], %dw: f32[{k}, {c}, 3, 3], %db: f32[{k}] = aten::convolution_backward(
//     %y, %x, %w, [{k}], [2, 2], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true])
//   return %y, %dx, %dw, %db
// Case, n = 1..3 (4), g = 2..4 (2), c = 2..20 (32), k = 1..20 (32), h = 1..7 (28), w = 1..6 (28):
//   # In groups, that of the weight alone.
//   input %x: f32[{n}, {g*c}, {h}, {w}]
//   input %w: f32[{g*k}, {c}, 3, 3]
//   input %dy: f32[{n}, {g*k}, {h}, {w}]
//   %dx: none, %dw: f32[{g*k}, {c}, 3, 3], %db: none = aten::convolution_backward(
//     %dy, %x, %w, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], {g}, [false, true, false])
//   return %dw
struct ConvWeightF32Step : ConvWeightValues {
  static constexpr std::string_view kKernel = "conv_weight_f32";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvWeightValues::describe(step, fields, Dtype::f32);
  }
};

// Case, n = 1..2 (1), c = 1..20 (64), k = 1..35 (64), h = 2..9 (28), w = 2..8 (28), oh = (h-1)//2+1, ow = (w-1)//2+1:
//   # All gradients.
//   input %x32: f32[{n}, {c}, {h}, {w}]
//   input %w32: f32[{k}, {c}, 3, 3]
//   %x: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x32, bf16)
//   %w: bf16[{k}, {c}, 3, 3] = aten::to.dtype(%w32, bf16)
//   %y: bf16[{n}, {k}, {oh}, {ow}] = aten::convolution(%x, %w, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)
//   %dx: bf16[{n}, {c}, {h}, {w}], %dw: bf16[{k}, {c}, 3, 3], %db: bf16[{k}] = aten::convolution_backward(
//     %y, %x, %w, [{k}], [2, 2], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true])
//   return %y, %dx, %dw, %db
struct ConvWeightBf16Step : ConvWeightValues {
  static constexpr std::string_view kKernel = "conv_weight_bf16";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvWeightValues::describe(step, fields, Dtype::bf16);
  }
};

}  // namespace lissome

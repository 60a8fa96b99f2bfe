// Convolutions with a window a channel, plain and transposed, and with the product of pixels behind them; see
// kernel/depthwise. The weight is packed by pack_depthwise, in f32 for bf16 too unless it is grouped:
// [taps * inputs of a channel * channels].
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// Case, n = 1..2 (1), c = 2..40 (96), h = 1..9 (56), w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: f32[{c}, 1, 3, 3]
//   parameter @b: f32[{c}]
//   %y: f32[{n}, {c}, {h}, {w}] =
//     lissome::conv_act(%x, @d, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], {c}, "none", residual=%x)
//   return %y
// Case, n = 1..2 (1), c = 2..40 (96), h = 2..9 (56), w = 2..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: f32[{c}, 1, 5, 5]
//   %y: f32[{n}, {c}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     lissome::conv_act(%x, @d, none, [2, 2], [2, 2], [1, 1], false, [0, 0], {c}, "relu6")
//   return %y
// Case, n = 1..2 (1), c = 2..40 (96), h = 2..9 (112), w = 2..20 (112):
//   # Zeros below and right alone.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: f32[{c}, 1, 3, 3]
//   %y: f32[{n}, {c}, {h//2}, {w//2}] =
//     lissome::conv_act(%x, @d, none, [2, 2], [0, 0, 1, 1], [1, 1], false, [0, 0], {c}, "relu6")
//   return %y
struct DepthwiseF32Step : ConvValuesOf<Dtype::f32> {
  static constexpr std::string_view kKernel = "depthwise_f32";
};

// Case, n = 1..2 (1), c = 2..40 (96), h = 1..9 (56), w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: bf16[{c}, 1, 3, 3]
//   parameter @b: bf16[{c}]
//   %0: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {c}, {h}, {w}] =
//     lissome::conv_act(%0, @d, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], {c}, "relu")
//   return %y
// Case, n = 1..2 (1), c = 2..40 (96), h = 2..9 (56), w = 2..20 (56):
//   # More zeros behind than before.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: bf16[{c}, 1, 5, 5]
//   %0: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {c}, {h//2}, {w//2}] =
//     lissome::conv_act(%0, @d, none, [2, 2], [1, 1, 2, 2], [1, 1], false, [0, 0], {c}, "relu")
//   return %y
struct DepthwiseBf16Step : ConvValuesOf<Dtype::bf16> {
  static constexpr std::string_view kKernel = "depthwise_bf16";
};

// The window slides over y.
// Case, n = 1..2 (1), c = 2..40 (64), h = 1..5 (28), w = 1..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: f32[{c}, 1, 2, 2]
//   parameter @b: f32[{c}]
//   %y: f32[{n}, {c}, {2*h}, {2*w}] =
//     aten::convolution(%x, @d, @b, [2, 2], [0, 0], [1, 1], true, [0, 0], {c})
//   return %y
// Case, n = 1..2 (1), c = 2..40 (64), h = 1..5 (28), w = 1..6 (28):
//   # Windows overlap.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: f32[{c}, 1, 4, 4]
//   %y: f32[{n}, {c}, {2*h}, {2*w}] =
//     lissome::conv_act(%x, @d, none, [2, 2], [1, 1], [1, 1], true, [0, 0], {c}, "relu")
//   return %y
struct DepthwiseTransposedF32Step : ConvValuesOf<Dtype::f32> {
  static constexpr std::string_view kKernel = "depthwise_transposed_f32";
};

// Case, n = 1..2 (1), c = 2..40 (64), h = 1..5 (28), w = 1..6 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: bf16[{c}, 1, 2, 2]
//   parameter @b: bf16[{c}]
//   %0: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {c}, {2*h}, {2*w}] =
//     aten::convolution(%0, @d, @b, [2, 2], [0, 0], [1, 1], true, [0, 0], {c})
//   return %y
struct DepthwiseTransposedBf16Step : ConvValuesOf<Dtype::bf16> {
  static constexpr std::string_view kKernel = "depthwise_transposed_bf16";
};

// Groups of 2, 4, 8 or 16 channels of x and as many of y.
// Case, n = 1..2 (1), e = 1..4 (2), g = 2..9 (32), h = 1..9 (56), w = 1..20 (56):
//   input %x: f32[{n}, {2**e*g}, {h}, {w}]
//   parameter @g: f32[{2**e*g}, {2**e}, 3, 3]
//   parameter @b: f32[{2**e*g}]
//   %y: f32[{n}, {2**e*g}, {h}, {w}] =
//     lissome::conv_act(%x, @g, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], {g}, "relu", residual=%x)
//   return %y
// Case, n = 1..2 (1), e = 1..4 (4), g = 2..9 (8), h = 2..9 (56), w = 2..20 (56):
//   # A stride.
//   input %x: f32[{n}, {2**e*g}, {h}, {w}]
//   parameter @g: f32[{2**e*g}, {2**e}, 3, 3]
//   %y: f32[{n}, {2**e*g}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     aten::convolution(%x, @g, none, [2, 2], [1, 1], [1, 1], false, [0, 0], {g})
//   return %y
// Case, n = 1..2 (1), e = 1..4 (3), g = 2..9 (24), w = 1..40 (400):
//   # Any window, over one dimension.
//   input %x: f32[{n}, {2**e*g}, {w}]
//   parameter @g: f32[{2**e*g}, {2**e}, 4]
//   %y: f32[{n}, {2**e*g}, {w}] =
//     lissome::conv_act(%x, @g, none, [1], [6, 0], [2], false, [0], {g}, "none")
//   return %y
struct GroupedF32Step : ConvValuesOf<Dtype::f32> {
  static constexpr std::string_view kKernel = "grouped_f32";
};

// The weight is packed by pack_grouped_bf16.
// Case, n = 1..2 (1), e = 1..4 (2), g = 2..9 (32), h = 1..9 (56), w = 1..20 (56):
//   input %x: f32[{n}, {2**e*g}, {h}, {w}]
//   parameter @g: bf16[{2**e*g}, {2**e}, 3, 3]
//   parameter @b: bf16[{2**e*g}]
//   %0: bf16[{n}, {2**e*g}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %y: bf16[{n}, {2**e*g}, {h}, {w}] =
//     lissome::conv_act(%0, @g, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], {g}, "relu")
//   return %y
struct GroupedBf16Step : ConvValuesOf<Dtype::bf16, Dtype::bf16> {
  static constexpr std::string_view kKernel = "grouped_bf16";
};

// The activation behind the sums of the first of two convolutions.
struct FirstActivationFields : ActivationFields {
  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.text("first_activation", self.activation, is_known_activation);
    fields.any_number("first_alpha", self.alpha);
    fields.any_number("first_beta", self.beta);
  }
};

// A depthwise convolution of x with first_weight and first_bias, then the 1x1 convolution with `weight`, packed as that
// of linear_f32, bias and residual: what lies between is never written. The window is that of the first.
// Case, force * separable_f32, n = 1..2 (1), c = 2..40 (96), k = 1..20 (24), h = 2..9 (56), w = 2..8 (56),
//     oh = (h-1)//2+1, ow = (w-1)//2+1:
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %z: f32[{n}, {k}, {oh}, {ow}]
//   parameter @d: f32[{c}, 1, 3, 3]
//   parameter @db: f32[{c}]
//   parameter @p: f32[{k}, {c}, 1, 1]
//   parameter @pb: f32[{k}]
//   %1: f32[{n}, {c}, {oh}, {ow}] =
//     lissome::conv_act(%x, @d, @db, [2, 2], [1, 1], [1, 1], false, [0, 0], {c}, "relu6")
//   %2: f32[{n}, {k}, {oh}, {ow}] =
//     lissome::conv_act(%1, @p, @pb, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", residual=%z)
//   return %2
// Case, force * separable_f32, n = 1..2 (1), c = 2..40 (96), k = 1..40 (24), h = 2..9 (112), w = 2..20 (112):
//   # Zeros below and right alone.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: f32[{c}, 1, 3, 3]
//   parameter @p: f32[{k}, {c}, 1, 1]
//   %1: f32[{n}, {c}, {h//2}, {w//2}] =
//     lissome::conv_act(%x, @d, none, [2, 2], [0, 0, 1, 1], [1, 1], false, [0, 0], {c}, "relu6")
//   %2: f32[{n}, {k}, {h//2}, {w//2}] = aten::convolution(%1, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
//   return %2
// Case, force * separable_f32, n = 1..2 (1), c = 2..40 (96), k = 1..40 (96), h = 1..9 (28), w = 1..8 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @d: f32[{c}, 1, 3, 3]
//   parameter @p: f32[{k}, {c}, 1, 1]
//   parameter @pb: f32[{k}]
//   %1: f32[{n}, {c}, {h}, {w}] =
//     aten::convolution(%x, @d, none, [1, 1], [1, 1], [1, 1], false, [0, 0], {c})
//   %2: f32[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%1, @p, @pb, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "relu")
//   return %2
struct SeparableF32Step {
  static constexpr std::string_view kKernel = "separable_f32";
  Operand x, weight;
  OptionalOperand bias, residual;
  Operand first_weight;
  OptionalOperand first_bias;
  Result y;
  WindowFields window;
  ActivationFields activation;
  bool residual_last = false;  // the residual is added behind the activation
  FirstActivationFields first_activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    describe_values(step, fields);
    fields.reuses(step.residual);
  }
  template <typename Self, typename Fields>
  static void describe_values(Self& step, Fields& fields) {
    fields.operand("x", step.x, {Dtype::f32}, ValueLayout::channels_last);
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.operand("bias", step.bias, {Dtype::f32});
    fields.operand("residual", step.residual, {Dtype::f32}, ValueLayout::channels_last);
    fields.operand("first_weight", step.first_weight, {Dtype::f32});
    fields.operand("first_bias", step.first_bias, {Dtype::f32});
    fields.result("y", step.y, {Dtype::f32}, ValueLayout::channels_last);
    WindowFields::describe_ungrouped(step.window, fields);
    ActivationFields::describe(step.activation, fields);
    fields.flag("residual_last", step.residual_last);
    FirstActivationFields::describe(step.first_activation, fields);
  }
};

// The activation behind the sums of the 1x1 convolution that comes first of three.
struct WidenActivationFields : ActivationFields {
  template <typename Self, typename Fields>
  static void describe(Self& self, Fields& fields) {
    fields.text("widen_activation", self.activation, is_known_activation);
    fields.any_number("widen_alpha", self.alpha);
    fields.any_number("widen_beta", self.beta);
  }
};

// A 1x1 convolution of x with widen_weight, packed as that of linear_f32, and widen_bias, then what SeparableF32Step
// does: of the widened image a few lines are there at a time. The residual may be x.
// Case, force * inverted_f32, n = 1..2 (1), i = 5..20 (16), c = 2..40 (96), k = 1..20 (24), h = 2..9 (112),
//     w = 2..20 (112), oh = (h-1)//2+1, ow = (w-1)//2+1:
//   input %x: f32[{n}, {i}, {h}, {w}]
//   parameter @e: f32[{c}, {i}, 1, 1]
//   parameter @eb: f32[{c}]
//   parameter @d: f32[{c}, 1, 3, 3]
//   parameter @db: f32[{c}]
//   parameter @p: f32[{k}, {c}, 1, 1]
//   parameter @pb: f32[{k}]
//   %1: f32[{n}, {c}, {h}, {w}] =
//     lissome::conv_act(%x, @e, @eb, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "relu6")
//   %2: f32[{n}, {c}, {oh}, {ow}] =
//     lissome::conv_act(%1, @d, @db, [2, 2], [1, 1], [1, 1], false, [0, 0], {c}, "relu6")
//   %3: f32[{n}, {k}, {oh}, {ow}] = aten::convolution(%2, @p, @pb, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)
//   return %3
// Case, force * inverted_f32, n = 1..2 (1), i = 5..40 (24), c = 2..40 (144), h = 1..9 (56), w = 1..20 (56):
//   # x is added again.
//   input %x: f32[{n}, {i}, {h}, {w}]
//   parameter @e: f32[{c}, {i}, 1, 1]
//   parameter @d: f32[{c}, 1, 5, 3]
//   parameter @p: f32[{i}, {c}, 1, 1]
//   %1: f32[{n}, {c}, {h}, {w}] =
//     lissome::conv_act(%x, @e, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "silu")
//   %2: f32[{n}, {c}, {h}, {w}] =
//     lissome::conv_act(%1, @d, none, [1, 1], [3, 1, 1, 1], [1, 1], false, [0, 0], {c}, "silu")
//   %3: f32[{n}, {i}, {h}, {w}] =
//     lissome::conv_act(%2, @p, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "none", residual=%x)
//   return %3
struct InvertedF32Step : SeparableF32Step {
  static constexpr std::string_view kKernel = "inverted_f32";
  Operand widen_weight;
  OptionalOperand widen_bias;
  WidenActivationFields widen_activation;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    SeparableF32Step::describe_values(step, fields);
    fields.operand("widen_weight", step.widen_weight, {Dtype::f32});
    fields.operand("widen_bias", step.widen_bias, {Dtype::f32});
    WidenActivationFields::describe(step.widen_activation, fields);
  }
};

}  // namespace lissome

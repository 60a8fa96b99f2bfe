// Convolutions in bf16 and the packing of their weight, where it changes from run to run; see kernel/conv/conv_bf16.h.
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// Any window, plain or transposed: then it slides over y. The weight is packed by pack_conv_bf16.
// Case, n = 1..2 (1), c = 1..31 (3), k = 1..35 (32), h = 1..9 (112), w = 1..8 (112):
//   # An image of few channels is read as it lies.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: bf16[{k}, {c}, 3, 3]
//   parameter @b: bf16[{k}]
//   %0: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %1: bf16[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%0, @c, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
//   return %1
// Case, n = 1..2 (1), c = 32..70 (64), h = 1..9 (56), w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: bf16[{c}, {c}, 3, 3]
//   %0: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %1: bf16[{n}, {c}, {h}, {w}] =
//     lissome::conv_act(%0, @c, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu", residual=%0)
//   return %1
// Case, n = 1..2 (1), c = 1..40 (3), k = 1..35 (32), h = 2..9 (224), w = 2..40 (224):
//   # Zeros below and right alone.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: bf16[{k}, {c}, 3, 3]
//   %0: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %1: bf16[{n}, {k}, {h//2}, {w//2}] =
//     lissome::conv_act(%0, @c, none, [2, 2], [0, 0, 1, 1], [1, 1], false, [0, 0], 1, "relu")
//   return %1
// Case, n = 1..2 (1), g = 1..3 (2), c = 2..20 (32), k = 2..20 (32), h = 1..5 (28), w = 1..6 (28):
//   # Transposed, in groups.
//   input %x: f32[{n}, {g*c}, {h}, {w}]
//   parameter @t: bf16[{g*c}, {k}, 3, 3]
//   parameter @b: bf16[{g*k}]
//   %0: bf16[{n}, {g*c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %1: bf16[{n}, {g*k}, {2*h}, {2*w}] =
//     aten::convolution(%0, @t, @b, [2, 2], [1, 1], [1, 1], true, [1, 1], {g})
//   return %1
struct ConvBf16Step : ConvValues {
  static constexpr std::string_view kKernel = "conv_bf16";
  bool transposed = false;
  bool planes = false;  // x is in row order, bf16 or f32; one group, few channels, not transposed

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::bf16, Dtype::f32}, {Dtype::bf16}, {Dtype::bf16}, ValueLayout::dense});
    fields.flag("transposed", step.transposed);
    fields.flag("planes", step.planes);
  }
};

// The weight [out channels, in channels / groups, (height,) width], transposed [in channels, out channels / groups,
// ...], as conv_bf16 reads it. One in f32 is rounded.
// Case, n = 1..2 (1), c = 1..40 (128), k = 1..35 (128), h = 1..9 (28), w = 1..8 (28):
//   input %x32: f32[{n}, {c}, {h}, {w}]
//   input %w32: f32[{k}, {c}, 3, 3]
//   %x: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x32, bf16)
//   %w: bf16[{k}, {c}, 3, 3] = aten::to.dtype(%w32, bf16)
//   %y: bf16[{n}, {k}, {h}, {w}] = aten::convolution(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
//   return %y
// Case, n = 1..2 (1), c = 1..40 (128), k = 2..20 (64), h = 1..5 (14), w = 1..6 (14):
//   # Transposed.
//   input %x32: f32[{n}, {c}, {h}, {w}]
//   input %w32: f32[{c}, {k}, 2, 2]
//   input %b32: f32[{k}]
//   %x: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x32, bf16)
//   %w: bf16[{c}, {k}, 2, 2] = aten::to.dtype(%w32, bf16)
//   %b: bf16[{k}] = aten::to.dtype(%b32, bf16)
//   %y: bf16[{n}, {k}, {2*h}, {2*w}] = aten::convolution(%x, %w, %b, [2, 2], [0, 0], [1, 1], true, [0, 0], 1)
//   return %y
struct PackConvBf16Step {
  static constexpr std::string_view kKernel = "pack_conv_bf16";
  Operand weight;
  Result packed;
  WindowFields window;
  bool transposed = false;

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("weight", step.weight, {Dtype::bf16, Dtype::f32});
    fields.result("packed", step.packed, {Dtype::bf16});
    WindowFields::describe(step.window, fields);
    fields.flag("transposed", step.transposed);
  }
};

}  // namespace lissome

// Convolutions in f32 and the packing of their weight, where it changes from run to run; see kernel/conv/conv_f32.h.
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// Any window. The weight is packed by pack_conv_f32; `zeros` [in channels] is what is read outside of x.
// Case, n = 1..2 (1), c = 1..20 (64), k = 1..35 (64), h = 1..9 (56), w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: f32[{k}, {c}, 3, 3]
//   parameter @b: f32[{k}]
//   %y: f32[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%x, @c, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
//   return %y
// Case, n = 1..2 (1), c = 1..20 (64), k = 1..35 (256), h = 1..9 (28), w = 1..8 (28):
//   # The second one adds a residual.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: f32[{k}, {c}, 1, 1]
//   parameter @b: f32[{k}]
//   %y: f32[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%x, @c, @b, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "relu")
//   %z: f32[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%x, @c, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, "relu6", residual=%y)
//   return %z
// Case, n = 1..2 (1), g = 2..4 (4), c = 1..20 (16), k = 2..20 (32), h = 2..9 (56), w = 2..8 (56):
//   # Groups and a stride.
//   input %x: f32[{n}, {g*c}, {h}, {w}]
//   parameter @c: f32[{g*k}, {c}, 3, 3]
//   %y: f32[{n}, {g*k}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     aten::convolution(%x, @c, none, [2, 2], [1, 1], [1, 1], false, [0, 0], {g})
//   return %y
// Case, n = 1..2 (4), c = 1..20 (64), k = 1..35 (64), w = 1..40 (1000):
//   # One dimension, dilated.
//   input %x: f32[{n}, {c}, {w}]
//   parameter @c: f32[{k}, {c}, 3]
//   parameter @b: f32[{k}]
//   %y: f32[{n}, {k}, {w}] = aten::convolution(%x, @c, @b, [1], [2], [2], false, [0], 1)
//   return %y
// Case, n = 1..2 (1), c = 1..20 (3), k = 1..35 (32), h = 2..9 (224), w = 2..40 (224):
//   # Zeros below and right alone.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: f32[{k}, {c}, 3, 3]
//   %y: f32[{n}, {k}, {h//2}, {w//2}] =
//     lissome::conv_act(%x, @c, none, [2, 2], [0, 0, 1, 1], [1, 1], false, [0, 0], 1, "relu")
//   return %y
// Case, n = 1..2 (1), c = 1..20 (64), k = 1..35 (64), h = 1..9 (28), w = 1..20 (28):
//   # More zeros above than below, none left.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: f32[{k}, {c}, 5, 3]
//   %y: f32[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%x, @c, none, [1, 1], [3, 0, 1, 2], [1, 1], false, [0, 0], 1, "none")
//   return %y
struct ConvF32Step : ConvValues {
  static constexpr std::string_view kKernel = "conv_f32";
  Operand zeros;
  bool finite_weight = false;  // it holds neither infinity nor NaN: products may run on tile registers
  bool planes = false;         // x is in row order; one group

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvValues::describe(step, fields, {{Dtype::f32}, {Dtype::f32}, {Dtype::f32}, ValueLayout::dense});
    fields.operand("zeros", step.zeros, {Dtype::f32});
    fields.flag("finite_weight", step.finite_weight);
    fields.flag("planes", step.planes);
  }
};

inline constexpr std::string_view kPackForward = "forward", kPackData = "data";
inline bool is_conv_packing(std::string_view word) { return word == kPackForward || word == kPackData; }

// The weight [out channels, in channels / groups, (height,) width] as conv_f32 reads it, or for the gradient of the
// data as conv_data_f32 does; see ConvPacking.
// Case, n = 1..2 (1), c = 5..20 (128), k = 1..35 (128), h = 1..9 (28), w = 1..8 (28):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %w: f32[{k}, {c}, 3, 3]
//   input %bias: f32[{k}]
//   %y: f32[{n}, {k}, {h}, {w}] = aten::convolution(%x, %w, %bias, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)
//   return %y
// Case, n = 1..2 (1), c = 1..3 (3), k = 1..35 (64), h = 2..9 (112), w = 2..8 (112):
//   # An image of few channels is read as it lies.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   input %w: f32[{k}, {c}, 3, 3]
//   %y: f32[{n}, {k}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     lissome::conv_act(%x, %w, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 1, "relu")
//   return %y
struct PackConvF32Step {
  static constexpr std::string_view kKernel = "pack_conv_f32";
  Operand weight;
  Result packed;
  WindowFields window;
  std::string packing{kPackForward};

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    fields.operand("weight", step.weight, {Dtype::f32});
    fields.result("packed", step.packed, {Dtype::f32});
    WindowFields::describe(step.window, fields);
    fields.text("packing", step.packing, is_conv_packing);
  }
};

}  // namespace lissome

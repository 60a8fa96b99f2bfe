// Convolutions of floats by tiles, with fewer products; see kernel/winograd/winograd_f32.h.
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// 3x3 windows of stride 1 by tiles of 2x2 or 4x4 (Lavin and Gray, arXiv:1509.09308), one group. x, residual, zeros and
// y are all f32 or all bf16. The weight is packed by pack_winograd_f32; `zeros` [in channels] is what is read outside
// of x.
// Case, force lissome::conv_act winograd_f32_4x4, n = 1..2 (1), c = 16..40 (64), k = 16..40 (64), h = 1..9 (56),
//     w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: f32[{k}, {c}, 3, 3]
//   parameter @b: f32[{k}]
//   %1: f32[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%x, @c, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
//   return %1
// Case, force lissome::conv_act winograd_f32_2x2, n = 1..2 (1), c = 16..40 (64), h = 1..9 (56), w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: f32[{c}, {c}, 3, 3]
//   %1: f32[{n}, {c}, {h}, {w}] =
//     lissome::conv_act(%x, @c, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "none", residual=%x)
//   return %1
// Case, force lissome::conv_act winograd_f32_4x4, n = 1..2 (1), c = 16..40 (64), k = 16..40 (64), h = 1..9 (56),
//     w = 1..8 (56):
//   # Zeros above and left alone.
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: f32[{k}, {c}, 3, 3]
//   %1: f32[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%x, @c, none, [1, 1], [2, 2, 0, 0], [1, 1], false, [0, 0], 1, "relu")
//   return %1
// Case, force lissome::conv_act winograd_bf16_4x4, n = 1..2 (1), c = 16..40 (64), k = 16..40 (64), h = 1..9 (56),
//     w = 1..8 (56):
//   input %x: f32[{n}, {c}, {h}, {w}]
//   parameter @c: bf16[{k}, {c}, 3, 3]
//   parameter @b: bf16[{k}]
//   %0: bf16[{n}, {c}, {h}, {w}] = aten::to.dtype(%x, bf16)
//   %1: bf16[{n}, {k}, {h}, {w}] =
//     lissome::conv_act(%0, @c, @b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1, "relu")
//   return %1
struct WinogradF32Step : ConvValues {
  static constexpr std::string_view kKernel = "winograd_f32";
  Operand zeros;
  int64_t tile = 0;  // 2 or 4

  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    constexpr DtypeSet kImages = {Dtype::f32, Dtype::bf16};
    ConvValues::describe(step, fields, {kImages, {Dtype::f32}, kImages});
    fields.operand("zeros", step.zeros, kImages);
    fields.integer("tile", step.tile, 2, 4, kRequired);
  }
};

}  // namespace lissome

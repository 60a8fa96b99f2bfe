// Convolutions of u8 images through the products of transformed tiles; see kernel/winograd/winograd_u8s8.h.
#pragma once

#include "lissome/runtime/step/conv/conv_u8s8_steps.h"

namespace lissome {

// 3x3 windows of stride 1 by tiles of 4x4 (Lavin and Gray, arXiv:1509.09308).
// Case, force lissome::conv_int8_u8 winograd_u8s8, n = 1..2 (1), c = 1..2 (2), k = 1..2 (2), h = 1..9 (56),
//     w = 1..8 (56):
//   input %x: f32[{n}, {32*c}, {h}, {w}]
//   parameter @w: i8[{32*k}, {32*c}, 3, 3]
//   parameter @s: f32[{32*k}]
//   %0: u8[{n}, {32*c}, {h}, {w}] = lissome::quantize(%x, 0.02, 120)
//   %1: u8[{n}, {32*k}, {h}, {w}] = lissome::conv_int8_u8(
//     %0, 0.02, 120, @w, @s, none, [1, 1], [1, 1], [1, 1], 1, "relu", none, 0.05, 0)
//   %2: f32[{n}, {32*k}, {h}, {w}] = lissome::dequantize(%1, 0.05, 0)
//   return %2
struct WinogradU8S8Step : BorderedConvU8S8Values {
  static constexpr std::string_view kKernel = "winograd_u8s8";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    BorderedConvU8S8Values::describe(step, fields, Dtype::i16);
  }
};

}  // namespace lissome

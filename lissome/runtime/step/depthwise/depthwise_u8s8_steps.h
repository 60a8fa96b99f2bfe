// Convolutions of u8 images whose channels are those of x: one input a channel, or small groups.
#pragma once

#include "lissome/runtime/step/conv/conv_u8s8_steps.h"

namespace lissome {

// A window a channel.
// Case, n = 1..2 (1), c = 2..70 (96), h = 1..9 (56), w = 1..8 (56):
//   # A residual, and a result in u8.
//   input %x: u8[{n}, {c}, {h}, {w}]
//   parameter @w2: i8[{c}, 1, 3, 3]
//   parameter @s1: f32[{c}]
//   parameter @b1: f32[{c}]
//   %1: u8[{n}, {c}, {h}, {w}] = lissome::conv_int8_u8(
//     %x, 0.02, 120, @w2, @s1, @b1, [1, 1], [1, 1], [1, 1], {c}, "relu", %x, 0.05, 0, 0.1, 3)
//   return %1
// Case, n = 1..2 (1), c = 2..70 (96), h = 2..9 (56), w = 2..8 (56):
//   # A stride, and a result in f32.
//   input %x: u8[{n}, {c}, {h}, {w}]
//   parameter @w2: i8[{c}, 1, 5, 5]
//   parameter @s1: f32[{c}]
//   %1: f32[{n}, {c}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     lissome::conv_int8(%x, 0.02, 120, @w2, @s1, none, [2, 2], [2, 2], [1, 1], {c}, "relu6", none)
//   return %1
// Case, n = 1..2 (1), c = 2..70 (96), h = 2..9 (112), w = 2..20 (112):
//   # Zeros below and right alone.
//   input %x: u8[{n}, {c}, {h}, {w}]
//   parameter @w2: i8[{c}, 1, 3, 3]
//   parameter @s1: f32[{c}]
//   %1: f32[{n}, {c}, {h//2}, {w//2}] =
//     lissome::conv_int8(%x, 0.02, 120, @w2, @s1, none, [2, 2], [0, 0, 1, 1], [1, 1], {c}, "relu6", none)
//   return %1
struct DepthwiseU8S8Step : ConvU8S8Values {
  static constexpr std::string_view kKernel = "depthwise_u8s8";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvU8S8Values::describe(step, fields, Dtype::i8);
  }
};

// Groups of 2, 4, 8, 16 or 32 channels of x and as many of y. The weight is packed by pack_grouped_u8s8.
// Case, n = 1..2 (1), e = 1..5 (4), g = 2..9 (8), h = 1..9 (28), w = 1..20 (28):
//   # A residual, and a result in u8.
//   input %x: u8[{n}, {2**e*g}, {h}, {w}]
//   parameter @w2: i8[{2**e*g}, {2**e}, 3, 3]
//   parameter @s1: f32[{2**e*g}]
//   parameter @b1: f32[{2**e*g}]
//   %1: u8[{n}, {2**e*g}, {h}, {w}] = lissome::conv_int8_u8(
//     %x, 0.02, 120, @w2, @s1, @b1, [1, 1], [1, 1], [1, 1], {g}, "relu", %x, 0.05, 0, 0.1, 3)
//   return %1
// Case, n = 1..2 (1), e = 1..5 (2), g = 2..9 (32), h = 2..9 (56), w = 2..20 (56):
//   # A stride, and a result in f32.
//   input %x: u8[{n}, {2**e*g}, {h}, {w}]
//   parameter @w2: i8[{2**e*g}, {2**e}, 3, 3]
//   parameter @s1: f32[{2**e*g}]
//   %1: f32[{n}, {2**e*g}, {(h-1)//2+1}, {(w-1)//2+1}] =
//     lissome::conv_int8(%x, 0.02, 120, @w2, @s1, none, [2, 2], [1, 1], [1, 1], {g}, "relu6", none)
//   return %1
// Case, n = 1..2 (1), e = 1..5 (5), g = 2..9 (32), h = 2..9 (14), w = 2..20 (14):
//   # Any window, and zeros below and right alone.
//   input %x: u8[{n}, {2**e*g}, {h}, {w}]
//   parameter @w2: i8[{2**e*g}, {2**e}, 2, 4]
//   parameter @s1: f32[{2**e*g}]
//   %1: f32[{n}, {2**e*g}, {h}, {w}] =
//     lissome::conv_int8(%x, 0.02, 120, @w2, @s1, none, [1, 1], [0, 0, 1, 3], [1, 1], {g}, "none", none)
//   return %1
struct GroupedU8S8Step : ConvU8S8Values {
  static constexpr std::string_view kKernel = "grouped_u8s8";
  template <typename Self, typename Fields>
  static void describe(Self& step, Fields& fields) {
    ConvU8S8Values::describe(step, fields, Dtype::i8);
  }
};

}  // namespace lissome

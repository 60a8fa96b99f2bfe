// Convolutions by tiles, with fewer products; see kernel/winograd/winograd_f32.h. The one of u8 stands with the other
// convolutions of u8.
#pragma once

#include "lissome/runtime/step/conv/conv_values.h"

namespace lissome {

// 3x3 windows of stride 1 by tiles of 2x2 or 4x4 (Lavin and Gray, arXiv:1509.09308), one group. x, residual, zeros and
// y are all f32 or all bf16. The weight is packed by pack_winograd_f32; `zeros` [in channels] is what is read outside
// of x.
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

// The end of the portable forms of the int8 products: an exact sum becomes a result.
#pragma once

#include <cmath>

#include "lissome/kernel/gemm/runs_u8s8.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

inline uint8_t quantize_one(float y, float inverse, int32_t zero) {
  const float low = static_cast<float>(-zero);
  float t = y * inverse;
  t = t > low ? t : low;  // NaN to low
  t = t < low + 255 ? t : low + 255;
  return static_cast<uint8_t>(std::nearbyint(t) + static_cast<float>(zero));
}

// `sum` is of x * weight; x_zero is taken out here. Sums wrap around as those of registers do.
inline void finish_one(const OutputU8S8& output, int64_t row, int64_t n, uint32_t sum) {
  const int32_t zero = output.row_scales ? output.row_zeros[row] : output.x_zero;
  const auto acc =
      static_cast<int32_t>(sum - static_cast<uint32_t>(zero) * static_cast<uint32_t>(output.weight_sums[n]));
  const float multiplier = output.row_scales ? output.multiplier[n] * output.row_scales[row] : output.multiplier[n];
  float y = std::fma(static_cast<float>(acc), multiplier, output.bias ? output.bias[n] : 0.0f);
  const int64_t residual_at = row * output.residual_stride + n;
  if (output.residual) y += output.residual[residual_at];
  if (output.residual_bf16) y += widen_bf16(output.residual_bf16[residual_at]);
  if (output.residual_u8) {
    const auto steps = static_cast<float>(output.residual_u8[residual_at] - output.residual_zero);
    y = std::fma(steps, output.residual_scale, y);
  }
  y = static_cast<float>(activate(output.epilogue, y));
  const int64_t at = spread_row(output.spread, row) * output.y_stride + spread_output(output, n);
  if (output.narrows) {
    static_cast<uint16_t*>(output.y)[at] = narrow_bf16(y);
  } else if (output.out_inverse == 0) {
    static_cast<float*>(output.y)[at] = y;
  } else {
    static_cast<uint8_t*>(output.y)[at] = quantize_one(y, output.out_inverse, output.out_zero);
  }
}

}  // namespace
}  // namespace lissome

// The end of the portable forms of linear and convolution: a sum, with its bias, becomes a result. In double.
#pragma once

#include "lissome/kernel/gemm/linear_bf16.h"
#include "lissome/kernel/isa/convert_element.h"

namespace lissome {
namespace {

inline double widen_portable(float value) { return value; }
inline double widen_portable(uint16_t value) { return widen_bf16(value); }
inline void narrow_portable(double value, float& to) { to = static_cast<float>(value); }
inline void narrow_portable(double value, uint16_t& to) { to = narrow_bf16(static_cast<float>(value)); }

// OutputF32 or OutputBf16.
template <typename Output>
void store_portable(const Output& output, int64_t row, int64_t column, double sum) {
  const double residual = output.residual_place == ResidualPlace::none
                              ? 0
                              : widen_portable(output.residual[row * output.residual_stride + column]);
  if (output.residual_place == ResidualPlace::before_activation) sum += residual;
  sum = activate(output.epilogue, sum);
  if (output.residual_place == ResidualPlace::after_activation) sum += residual;
  narrow_portable(sum, output.y[row * output.y_stride + column]);
}

}  // namespace
}  // namespace lissome

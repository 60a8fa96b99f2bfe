// The end of the portable forms of linear and convolution: a sum, with its bias, becomes a result. In double.
#pragma once

#include "lissome/kernel/linear_f32.h"

namespace lissome {

inline void store_portable(const OutputF32& output, int64_t row, int64_t column, double sum) {
  const double residual =
      output.residual_place == ResidualPlace::none ? 0 : output.residual[row * output.residual_stride + column];
  if (output.residual_place == ResidualPlace::before_activation) sum += residual;
  sum = activate(output.epilogue, sum);
  if (output.residual_place == ResidualPlace::after_activation) sum += residual;
  output.y[row * output.y_stride + column] = static_cast<float>(sum);
}

}  // namespace lissome

// How depthwise kernels read the channels of a vector, and finish what they have summed.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/depthwise/depthwise.h"
#include "lissome/kernel/elementwise/activation_body.h"

namespace lissome {
namespace {

template <typename T>
LISSOME_INLINE Floats load_lanes(const T* p, int64_t lanes) {
  return lanes >= Floats::kWidth ? load(p) : load_first(p, lanes);
}

template <typename Call, typename Function>
LISSOME_INLINE void finish_pixel(const Call& call, int64_t row, int64_t c, int64_t lanes, Floats sum,
                                 const Function& activation) {
  const auto* residual = call.residual ? call.residual + row * call.residual_stride + c : nullptr;
  if (call.residual_place == ResidualPlace::before_activation) sum = sum + load_lanes(residual, lanes);
  sum = activation(sum);
  if (call.residual_place == ResidualPlace::after_activation) sum = sum + load_lanes(residual, lanes);
  auto* y = call.y + row * call.y_stride + c;
  if (lanes >= Floats::kWidth) {
    store(y, sum);
  } else {
    store_first(y, sum, lanes);
  }
}

template <typename Call>
LISSOME_INLINE void finish_pixel(const Call& call, int64_t row, int64_t c, int64_t lanes, Floats sum) {
  finish_pixel(call, row, c, lanes, sum, [&](Floats x) { return activate_vector(call.epilogue, x); });
}

// Once for all windows: inlined, activations would be most of their code.
template <typename Call>
__attribute__((noinline)) void finish_block(const Call& call, int64_t row, int64_t count, int64_t c,
                                            const float* sums) {
  choose_activation(call.epilogue, [&](const auto& activation) {
    for (int64_t p = 0; p < count; ++p) {
      finish_pixel(call, row + p, c, call.channels - c, load(sums + p * Floats::kWidth), activation);
    }
  });
}

}  // namespace
}  // namespace lissome

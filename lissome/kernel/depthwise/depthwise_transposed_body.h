// Depthwise transposed convolution over Floats, of f32 or bf16: channels across registers, a pixel at a time.
#pragma once

#include "lissome/kernel/conv/phase_walk.h"
#include "lissome/kernel/depthwise/depthwise_body.h"
#include "lissome/kernel/depthwise/depthwise_transposed.h"

namespace lissome {
namespace {

// `Vectors` registers of channels from `c` on.
template <int Vectors, typename Call, typename T>
LISSOME_INLINE void gather_channels(const Call& call, const T* image, int64_t row, int64_t c, const Meeting& above,
                                    const Meeting& beside) {
  const Window& w = call.window;
  Floats sums[Vectors];
  const auto lanes = [&](int v) { return call.channels - c - v * Floats::kWidth; };
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v)
    sums[v] = call.bias ? load_lanes(call.bias + c + v * Floats::kWidth, lanes(v)) : zeros();
  for (int64_t i = 0; i < above.count; ++i) {
    const int64_t line = (above.at + i * above.at_step) * w.width;
    const int64_t first = (above.tap - i * above.tap_step) * w.kernel_width;
    for (int64_t j = 0; j < beside.count; ++j) {
      const T* x = image + (line + beside.at + j * beside.at_step) * call.channels + c;
      const float* weight = call.weight + (first + beside.tap - j * beside.tap_step) * call.channels + c;
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const int64_t lane = v * Floats::kWidth;
        sums[v] = multiply_add(load_lanes(x + lane, lanes(v)), load_lanes(weight + lane, lanes(v)), sums[v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) finish_pixel(call, row, c + v * Floats::kWidth, lanes(v), sums[v]);
}

template <typename Call>
LISSOME_INLINE void run_depthwise_transposed(const Call& call, int part, int parts) {
  constexpr int64_t kBlock = kChannelVectors * Floats::kWidth;
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  walk_phases(w, rows, [&](int64_t row, int64_t n, const Meeting& above, const Meeting& beside) {
    const auto* image = call.x + n * w.height * w.width * call.channels;
    int64_t c = 0;
    for (; c + kBlock <= call.channels; c += kBlock)
      gather_channels<kChannelVectors>(call, image, row, c, above, beside);
    for (; c < call.channels; c += Floats::kWidth) gather_channels<1>(call, image, row, c, above, beside);
  });
}

LISSOME_INLINE void run_depthwise_transposed_f32(const DepthwiseF32Call& call, int part, int parts) {
  run_depthwise_transposed(call, part, parts);
}
LISSOME_INLINE void run_depthwise_transposed_bf16(const DepthwiseBf16Call& call, int part, int parts) {
  run_depthwise_transposed(call, part, parts);
}

}  // namespace
}  // namespace lissome

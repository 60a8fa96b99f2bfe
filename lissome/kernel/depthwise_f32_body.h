// Depthwise convolution over Floats: a pixel at a time, channels across registers.
#pragma once

#include "lissome/kernel/vector.h"

#include "lissome/kernel/activation_body.h"
#include "lissome/kernel/depthwise_f32.h"
#include "lissome/kernel/split.h"

namespace lissome {
namespace {

constexpr int kChannelVectors = 4;

// Taps whose pixel lies inside of x: [first, end) of the kernel window along one axis.
LISSOME_INLINE Range find_inside(int64_t corner, int64_t size, int64_t kernel, int64_t dilation) {
  Range range = {0, kernel};
  while (range.begin < kernel && corner + range.begin * dilation < 0) ++range.begin;
  while (range.end > range.begin && corner + (range.end - 1) * dilation >= size) --range.end;
  return range;
}

template <int Vectors>
LISSOME_INLINE void run_channels(const DepthwiseF32Call& call, const float* image, Range kh, Range kw, int64_t top,
                                 int64_t left, int64_t row, int64_t c, int64_t count) {
  const Window& w = call.window;
  Floats sums[Vectors];
  const bool whole = count == Vectors * Floats::kWidth;
  const auto read = [&](const float* p, int v) {
    const int64_t lanes = count - v * Floats::kWidth;
    return whole ? load(p + v * Floats::kWidth)
                 : load_first(p + v * Floats::kWidth, lanes < Floats::kWidth ? lanes : Floats::kWidth);
  };
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) sums[v] = call.bias ? read(call.bias + c, v) : zeros();
  for (int64_t h = kh.begin; h < kh.end; ++h) {
    for (int64_t u = kw.begin; u < kw.end; ++u) {
      const float* x =
          image + ((top + h * w.dilation_height) * w.width + left + u * w.dilation_width) * call.channels + c;
      const float* weight = call.weight + (h * w.kernel_width + u) * call.channels + c;
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[v] = multiply_add(read(x, v), read(weight, v), sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    const int64_t lanes = count - v * Floats::kWidth < Floats::kWidth ? count - v * Floats::kWidth : Floats::kWidth;
    const float* residual = call.residual + row * call.residual_stride + c;
    Floats y = sums[v];
    if (call.residual_place == ResidualPlace::before_activation) y = y + read(residual, v);
    y = activate_vector(call.epilogue, y);
    if (call.residual_place == ResidualPlace::after_activation) y = y + read(residual, v);
    store_first(call.y + row * call.y_stride + c + v * Floats::kWidth, y, lanes);
  }
}

LISSOME_INLINE void run_depthwise_f32(const DepthwiseF32Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    const int64_t top = oh * w.stride_height - w.pad_height, left = ow * w.stride_width - w.pad_width;
    const Range kh = find_inside(top, w.height, w.kernel_height, w.dilation_height);
    const Range kw = find_inside(left, w.width, w.kernel_width, w.dilation_width);
    const float* image = call.x + n * w.height * w.width * call.channels;
    int64_t c = 0;
    for (; c + kChannelVectors * Floats::kWidth <= call.channels; c += kChannelVectors * Floats::kWidth) {
      run_channels<kChannelVectors>(call, image, kh, kw, top, left, row, c, kChannelVectors * Floats::kWidth);
    }
    for (; c < call.channels; c += Floats::kWidth) {
      const int64_t lanes = call.channels - c < Floats::kWidth ? call.channels - c : Floats::kWidth;
      run_channels<1>(call, image, kh, kw, top, left, row, c, lanes);
    }
  }
}

}  // namespace
}  // namespace lissome

// Average pooling of bytes, channels across registers of s32.
#pragma once

#include "lissome/kernel/isa/vector_int8.h"

#include "lissome/kernel/gemm/quantize_body.h"
#include "lissome/kernel/pool/average_pool_u8.h"
#include "lissome/kernel/pool/pool_window.h"

namespace lissome {
namespace {

// `read(x)` is a register of neighbouring channels, of which there are `Vectors` beside each other.
template <int Vectors, typename Function>
LISSOME_INLINE void sum_bytes(const AveragePoolU8Call& call, const uint8_t* corner, const PoolWindow& at,
                              const Function& read, Ints (&sums)[Vectors]) {
  const Window& w = call.window;
  const int64_t count = (at.rows.end - at.rows.begin) * (at.columns.end - at.columns.begin);
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) sums[v] = fill_ints(static_cast<int32_t>(-count * call.x_zero));
  for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
    for (int64_t u = at.columns.begin; u < at.columns.end; ++u) {
      const uint8_t* x = corner + (h * w.width + u) * call.channels;
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[v] = sums[v] + read(x + v * Floats::kWidth);
    }
  }
}

LISSOME_INLINE void average_pixel(const AveragePoolU8Call& call, const uint8_t* image, const PoolWindow& at,
                                  uint8_t* y) {
  constexpr int kVectors = 4;
  const uint8_t* corner = image + (at.top * call.window.width + at.left) * call.channels;
  const Floats scale = fill(call.x_scale / at.divisor);
  const auto store_average = [&](Ints sum, int64_t c, int64_t count) {
    const auto zero = static_cast<float>(call.out_zero);
    store_first(y + c, quantize_vector(to_floats(sum) * scale, call.out_inverse, zero), count);
  };
  int64_t c = 0;
  for (; c + kVectors * Floats::kWidth <= call.channels; c += kVectors * Floats::kWidth) {
    Ints sums[kVectors];
    sum_bytes(call, corner + c, at, [](const uint8_t* x) { return load_u8(x); }, sums);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store_average(sums[v], c + v * Floats::kWidth, Floats::kWidth);
  }
  for (; c < call.channels; c += Floats::kWidth) {
    const int64_t left = call.channels - c < Floats::kWidth ? call.channels - c : Floats::kWidth;
    Ints sums[1];
    sum_bytes(call, corner + c, at, [left](const uint8_t* x) { return load_u8_first(x, left); }, sums);
    store_average(sums[0], c, left);
  }
}

// Parts divide the pixels of y.
LISSOME_INLINE void run_average_pool_u8(const AveragePoolU8Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range pixels = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
    const int64_t ow = pixel % w.out_width, oh = pixel / w.out_width % w.out_height;
    const int64_t n = pixel / w.out_width / w.out_height;
    average_pixel(call, static_cast<const uint8_t*>(call.x) + n * w.height * w.width * call.channels,
                  find_pool_window(call, oh, ow), static_cast<uint8_t*>(call.y) + pixel * call.channels);
  }
}

}  // namespace
}  // namespace lissome

// Pooling over Floats, channels across registers.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/pool/pool_window.h"

namespace lissome {
namespace {

// `fold(x)` for every element of a channel in the window; `x` at its first channel.
template <typename T, typename Function>
LISSOME_INLINE void visit_window(const PoolCall& call, const T* image, const PoolWindow& at, const Function& fold) {
  const Window& w = call.window;
  const int64_t line = w.dilation_height * w.width * call.channels, step = w.dilation_width * call.channels;
  const T* row = image + (at.top * w.width + at.left) * call.channels + at.rows.begin * line + at.columns.begin * step;
  for (int64_t h = at.rows.begin; h < at.rows.end; ++h, row += line) {
    const T* x = row;
    for (int64_t u = at.columns.begin; u < at.columns.end; ++u, x += step) fold(x);
  }
}

// Registers of channels beside each other; `read(x, v)` is register v.
template <int Vectors, typename T, typename Function>
LISSOME_INLINE void pool_registers(const PoolCall& call, const T* image, const PoolWindow& at, const Function& read,
                                   Floats (&result)[Vectors]) {
  if (call.average) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) result[v] = zeros();
    visit_window(call, image, at, [&](const T* x) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) result[v] = result[v] + read(x, v);
    });
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) result[v] = result[v] * fill(1.0f / at.divisor);
    return;
  }
  // NaN is kept apart, so that one comparison does not wait for the other.
  Floats unknown[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) unknown[v] = zeros(), result[v] = fill(-__builtin_inff());
  visit_window(call, image, at, [&](const T* x) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const Floats value = read(x, v);
      result[v] = max_with(result[v], value), unknown[v] = keep_nan(value, unknown[v]);
    }
  });
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) result[v] = keep_nan(unknown[v], result[v]);
}

template <typename T>
LISSOME_INLINE void pool_pixel(const PoolCall& call, const T* image, const PoolWindow& at, T* y) {
  constexpr int kVectors = 4;
  int64_t c = 0;
  for (; c + kVectors * Floats::kWidth <= call.channels; c += kVectors * Floats::kWidth) {
    Floats result[kVectors];
    pool_registers(call, image + c, at, [](const T* x, int v) { return load(x + v * Floats::kWidth); }, result);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(y + c + v * Floats::kWidth, result[v]);
  }
  for (; c < call.channels; c += Floats::kWidth) {
    const int64_t left = call.channels - c;
    const bool whole = left >= Floats::kWidth;
    Floats result[1];
    pool_registers(call, image + c, at, [&](const T* x, int) { return whole ? load(x) : load_first(x, left); }, result);
    if (whole) {
      store(y + c, result[0]);
    } else {
      store_first(y + c, result[0], left);
    }
  }
}

template <typename T>
LISSOME_INLINE void pool_pixels(const PoolCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  if (rows.begin == rows.end) return;
  int64_t ow = rows.begin % w.out_width, oh = rows.begin / w.out_width % w.out_height;
  int64_t n = rows.begin / w.out_width / w.out_height;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    pool_pixel(call, static_cast<const T*>(call.x) + n * w.height * w.width * call.channels,
               find_pool_window(call, oh, ow), static_cast<T*>(call.y) + row * call.channels);
    if (++ow < w.out_width) continue;
    ow = 0;
    if (++oh == w.out_height) oh = 0, ++n;
  }
}

// The largest of a window for 32 channels; `read(x)` gives those of a pixel.
template <typename Read>
LISSOME_INLINE __m256i find_largest(const PoolCall& call, const uint8_t* image, const PoolWindow& at,
                                    const Read& read) {
  __m256i largest = _mm256_setzero_si256();
  visit_window(call, image, at, [&](const uint8_t* x) { largest = _mm256_max_epu8(largest, read(x)); });
  return largest;
}

// For `count` channels, at most 32, from the first of `image` on.
LISSOME_INLINE void pool_bytes(const PoolCall& call, const uint8_t* image, const PoolWindow& at, int64_t count,
                               uint8_t* y) {
#ifdef __AVX512F__
  const auto there = static_cast<__mmask32>((uint64_t{1} << count) - 1);
  const __m256i largest =
      find_largest(call, image, at, [there](const uint8_t* x) { return _mm256_maskz_loadu_epi8(there, x); });
  _mm256_mask_storeu_epi8(y, there, largest);
#else
  const auto read_whole = [](const uint8_t* x) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)); };
  const auto read_some = [count](const uint8_t* x) {
    alignas(32) uint8_t bytes[32] = {};
    __builtin_memcpy(bytes, x, static_cast<size_t>(count));
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
  };
  alignas(32) uint8_t largest[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(largest), count == 32 ? find_largest(call, image, at, read_whole)
                                                                      : find_largest(call, image, at, read_some));
  __builtin_memcpy(y, largest, static_cast<size_t>(count));
#endif
}

LISSOME_INLINE void run_pool_bf16(const PoolCall& call, int part, int parts) {
  pool_pixels<uint16_t>(call, part, parts);
}
LISSOME_INLINE void run_pool_f32(const PoolCall& call, int part, int parts) { pool_pixels<float>(call, part, parts); }

LISSOME_INLINE void run_pool_u8(const PoolCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range lines = split_evenly(w.batch * w.out_height, part, parts);
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    const int64_t oh = line % w.out_height;
    const uint8_t* image =
        static_cast<const uint8_t*>(call.x) + line / w.out_height * w.height * w.width * call.channels;
    uint8_t* y = static_cast<uint8_t*>(call.y) + line * w.out_width * call.channels;
    PoolWindow at = find_pool_window(call, oh, 0);
    for (int64_t ow = 0; ow < w.out_width; ++ow, y += call.channels) {
      at.left = ow * w.stride_width - w.pad_width;
      const bool inside = at.left >= 0 && at.left + (w.kernel_width - 1) * w.dilation_width < w.width;
      at.columns = inside ? Range{0, w.kernel_width} : clip_window(at.left, w.width, w.kernel_width, w.dilation_width);
      for (int64_t c = 0; c < call.channels; c += 32) {
        pool_bytes(call, image + c, at, call.channels - c < 32 ? call.channels - c : 32, y + c);
      }
    }
  }
}

}  // namespace
}  // namespace lissome

// Pooling over Floats, channels across registers.
#pragma once

#include "lissome/kernel/vector.h"

#include "lissome/kernel/pool_window.h"

namespace lissome {
namespace {

LISSOME_INLINE void pool_pixel(const PoolCall& call, const float* image, const PoolWindow& at, float* y) {
  const Window& w = call.window;
  const Floats factor = fill(1.0f / at.divisor);
  for (int64_t c = 0; c < call.channels; c += Floats::kWidth) {
    const int64_t left = call.channels - c < Floats::kWidth ? call.channels - c : Floats::kWidth;
    Floats result = call.average ? zeros() : fill(-__builtin_inff());
    for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
      const float* row = image + ((at.top + h * w.dilation_height) * w.width + at.left) * call.channels + c;
      for (int64_t u = at.columns.begin; u < at.columns.end; ++u) {
        const Floats value = load_first(row + u * w.dilation_width * call.channels, left);
        result = call.average ? result + value : keep_nan(result, max_with(result, value));
      }
    }
    store_first(y + c, call.average ? result * factor : result, left);
  }
}

LISSOME_INLINE void run_pool_f32(const PoolCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    pool_pixel(call, static_cast<const float*>(call.x) + n * w.height * w.width * call.channels,
               find_pool_window(call, oh, ow), static_cast<float*>(call.y) + row * call.channels);
  }
}

LISSOME_INLINE void run_pool_u8(const PoolCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    const PoolWindow at = find_pool_window(call, oh, ow);
    const uint8_t* image = static_cast<const uint8_t*>(call.x) + n * w.height * w.width * call.channels;
    uint8_t* y = static_cast<uint8_t*>(call.y) + row * call.channels;
    for (int64_t c = 0; c < call.channels; c += 32) {
      const int64_t left = call.channels - c < 32 ? call.channels - c : 32;
      alignas(32) uint8_t result[32] = {};
      for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
        const uint8_t* line = image + ((at.top + h * w.dilation_height) * w.width + at.left) * call.channels + c;
        for (int64_t u = at.columns.begin; u < at.columns.end; ++u) {
          const uint8_t* x = line + u * w.dilation_width * call.channels;
          if (left == 32) {
            auto* lanes = reinterpret_cast<__m256i*>(result);
            _mm256_store_si256(lanes, _mm256_max_epu8(_mm256_load_si256(lanes),
                                                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x))));
          } else {
            for (int64_t i = 0; i < left; ++i) result[i] = x[i] > result[i] ? x[i] : result[i];
          }
        }
      }
      for (int64_t i = 0; i < left; ++i) y[c + i] = result[i];
    }
  }
}

}  // namespace
}  // namespace lissome

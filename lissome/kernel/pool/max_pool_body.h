// Max pooling with indices and its gradient over Floats, channels across registers.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/pool/max_pool.h"

namespace lissome {
namespace {

// Indices of as many channels as a register of floats holds, as 32-bit numbers.
#ifdef __AVX512F__
using Indices = __m512i;
inline Indices fill_indices(int64_t tap) { return _mm512_set1_epi32(static_cast<int>(tap)); }
inline Indices load_indices(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline void store_indices(uint8_t* p, Indices a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
}
// Where x is larger than the largest so far, or NaN.
inline void take_larger(Floats x, Indices tap, Floats& largest, Indices& indices) {
  const __mmask16 larger =
      _mm512_cmp_ps_mask(x.v, largest.v, _CMP_NLE_UQ) &
      (_mm512_cmp_ps_mask(largest.v, largest.v, _CMP_ORD_Q) | _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q));
  largest.v = _mm512_mask_mov_ps(largest.v, larger, x.v);
  indices = _mm512_mask_mov_epi32(indices, larger, tap);
}
inline Floats add_where_equal(Indices indices, Indices tap, Floats dy, Floats sum) {
  return {_mm512_mask_add_ps(sum.v, _mm512_cmpeq_epi32_mask(indices, tap), sum.v, dy.v)};
}
#else
using Indices = __m256i;
inline Indices fill_indices(int64_t tap) { return _mm256_set1_epi32(static_cast<int>(tap)); }
inline Indices load_indices(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
inline void store_indices(uint8_t* p, Indices a) {
  const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(halves, halves));
}
inline void take_larger(Floats x, Indices tap, Floats& largest, Indices& indices) {
  const __m256 known = _mm256_cmp_ps(largest.v, largest.v, _CMP_ORD_Q), odd = _mm256_cmp_ps(x.v, x.v, _CMP_UNORD_Q);
  const __m256 larger = _mm256_and_ps(_mm256_cmp_ps(x.v, largest.v, _CMP_NLE_UQ), _mm256_or_ps(known, odd));
  largest.v = _mm256_blendv_ps(largest.v, x.v, larger);
  indices = _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(indices), _mm256_castsi256_ps(tap), larger));
}
inline Floats add_where_equal(Indices indices, Indices tap, Floats dy, Floats sum) {
  const __m256 equal = _mm256_castsi256_ps(_mm256_cmpeq_epi32(indices, tap));
  return {_mm256_blendv_ps(sum.v, _mm256_add_ps(sum.v, dy.v), equal)};
}
#endif

// The taps of one dimension that lie inside of x.
LISSOME_INLINE Range find_inside(int64_t corner, int64_t size, int64_t kernel, int64_t dilation) {
  const int64_t begin = corner < 0 ? (-corner + dilation - 1) / dilation : 0;
  const int64_t left = size - corner, end = left <= 0 ? 0 : (left + dilation - 1) / dilation;
  return {begin, end < kernel ? end : kernel};
}

template <typename T>
LISSOME_INLINE void pool_max_pixel(const MaxPoolCallOf<T>& call, const T* image, int64_t top, int64_t left,
                                   int64_t row) {
  const Window& w = call.window;
  const Range rows = find_inside(top, w.height, w.kernel_height, w.dilation_height);
  const Range columns = find_inside(left, w.width, w.kernel_width, w.dilation_width);
  for (int64_t c = 0; c < call.channels; c += Floats::kWidth) {
    const int64_t count = call.channels - c;
    const bool whole = count >= Floats::kWidth;
    Floats largest = fill(-__builtin_inff());
    Indices indices = fill_indices(rows.begin * w.kernel_width + columns.begin);
    for (int64_t kh = rows.begin; kh < rows.end; ++kh) {
      for (int64_t kw = columns.begin; kw < columns.end; ++kw) {
        const T* x =
            image + ((top + kh * w.dilation_height) * w.width + left + kw * w.dilation_width) * call.channels + c;
        take_larger(whole ? load(x) : load_first(x, count), fill_indices(kh * w.kernel_width + kw), largest, indices);
      }
    }
    const int64_t at = row * call.channels + c;
    if (whole) {
      store(call.y + at, largest);
      store_indices(call.indices + at, indices);
    } else {
      store_first(call.y + at, largest, count);
      uint8_t bytes[16];
      store_indices(bytes, indices);
      __builtin_memcpy(call.indices + at, bytes, static_cast<size_t>(count));
    }
  }
}

template <typename T>
LISSOME_INLINE void pool_max_lines(const MaxPoolCallOf<T>& call, int part, int parts) {
  const Window& w = call.window;
  const Range lines = split_evenly(w.batch * w.out_height, part, parts);
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    const int64_t top = line % w.out_height * w.stride_height - w.pad_height;
    const T* image = call.x + line / w.out_height * w.height * w.width * call.channels;
    for (int64_t ow = 0; ow < w.out_width; ++ow)
      pool_max_pixel(call, image, top, ow * w.stride_width - w.pad_width, line * w.out_width + ow);
  }
}

// The windows along one dimension that may hold position `at`.
LISSOME_INLINE Range find_windows(int64_t at, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad,
                                  int64_t dilation) {
  const int64_t first = at + pad - (kernel - 1) * dilation, last = (at + pad) / stride;
  const int64_t begin = first <= 0 ? 0 : (first + stride - 1) / stride;
  return {begin, last + 1 < outputs ? last + 1 : outputs};
}

// `channels` of one pixel of dx.
template <typename T>
LISSOME_INLINE void gather_max_pixel(const MaxPoolGradientCallOf<T>& call, int64_t n, int64_t h, int64_t v,
                                     Range channels, T* dx) {
  const Window& w = call.window;
  const Range rows = find_windows(h, w.out_height, w.kernel_height, w.stride_height, w.pad_height, w.dilation_height);
  const Range columns = find_windows(v, w.out_width, w.kernel_width, w.stride_width, w.pad_width, w.dilation_width);
  for (int64_t c = channels.begin; c < channels.end; c += Floats::kWidth, dx += Floats::kWidth) {
    const int64_t count = channels.end - c;
    const bool whole = count >= Floats::kWidth;
    Floats sum = zeros();
    for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
      const int64_t down = h + w.pad_height - oh * w.stride_height;
      if (down % w.dilation_height != 0) continue;
      for (int64_t ow = columns.begin; ow < columns.end; ++ow) {
        const int64_t across = v + w.pad_width - ow * w.stride_width;
        if (across % w.dilation_width != 0) continue;
        const Indices tap = fill_indices(down / w.dilation_height * w.kernel_width + across / w.dilation_width);
        const int64_t at = ((n * w.out_height + oh) * w.out_width + ow) * call.channels + c;
        if (whole) {
          sum = add_where_equal(load_indices(call.indices + at), tap, load(call.dy + at), sum);
        } else {
          uint8_t bytes[16] = {};
          __builtin_memcpy(bytes, call.indices + at, static_cast<size_t>(count));
          sum = add_where_equal(load_indices(bytes), tap, load_first(call.dy + at, count), sum);
        }
      }
    }
    if (whole) {
      store(dx, sum);
    } else {
      store_first(dx, sum, count);
    }
  }
}

template <typename T>
LISSOME_INLINE void gather_max_lines(const MaxPoolGradientCallOf<T>& call, int part, int parts) {
  const Window& w = call.window;
  const Range lines = split_evenly(w.batch * w.height, part, parts);
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    for (int64_t v = 0; v < w.width; ++v)
      gather_max_pixel(call, line / w.height, line % w.height, v, {0, call.channels},
                       call.dx + (line * w.width + v) * call.channels);
  }
}

LISSOME_INLINE void run_max_pool_indices(const MaxPoolCall& call, int part, int parts) {
  pool_max_lines(call, part, parts);
}
LISSOME_INLINE void run_max_pool_indices_bf16(const MaxPoolBf16Call& call, int part, int parts) {
  pool_max_lines(call, part, parts);
}
LISSOME_INLINE void run_max_pool_gradient(const MaxPoolGradientCall& call, int part, int parts) {
  gather_max_lines(call, part, parts);
}
LISSOME_INLINE void run_max_pool_gradient_bf16(const MaxPoolGradientBf16Call& call, int part, int parts) {
  gather_max_lines(call, part, parts);
}

}  // namespace
}  // namespace lissome

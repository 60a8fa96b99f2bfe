// Copies what a convolution of bytes reads into the band of image_band.h.
#pragma once

#include <immintrin.h>

#include "lissome/kernel/conv/image_band.h"
#include "lissome/kernel/gemm/linear_u8s8.h"
#include "lissome/kernel/isa/inline.h"

namespace lissome {
namespace {

// One row of an image into a band: border, pixels, border. Pixels of a width that is no multiple of four get bytes
// between them that meet weights of zero.
LISSOME_INLINE void copy_image_row(const ConvU8S8Call& call, const ImageBand& band, const uint8_t* x, uint8_t* to) {
  const Window& w = call.window;
  const int64_t room = band.pitch / band.pixel, left = w.pad_width < room ? w.pad_width : room;
  const int64_t pixels = w.width < room - left ? w.width : room - left;
  __builtin_memset(to, call.x_zero, static_cast<size_t>(left * band.pixel));
  __builtin_memset(to + (left + pixels) * band.pixel, call.x_zero,
                   static_cast<size_t>((room - left - pixels) * band.pixel));
  to += left * band.pixel;
  const int64_t channels = call.in_channels;
  if (channels == band.pixel) {
    __builtin_memcpy(to, x, static_cast<size_t>(pixels * channels));
    return;
  }
  int64_t i = 0;
  if (channels == 3) {
    const __m128i spread = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
    for (; i + 6 <= pixels; i += 4) {
      const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i * 3));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 4), _mm_shuffle_epi8(four, spread));
    }
  }
  for (; i < pixels; ++i) {
    for (int64_t c = 0; c < channels; ++c) to[i * band.pixel + c] = x[i * channels + c];
  }
}

// What `out_rows` rows of output from `first` on read of one image.
LISSOME_INLINE void copy_band(const ConvU8S8Call& call, const ImageBand& band, const uint8_t* image, int64_t first,
                              int64_t out_rows, uint8_t* to) {
  const Window& w = call.window;
  const int64_t rows = (out_rows - 1) * w.stride_height + (w.kernel_height - 1) * w.dilation_height + 1;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t phase = i % w.stride_height;
    if (w.kernel_height == 1 && phase != 0) continue;
    const int64_t h = first * w.stride_height - w.pad_height + i;
    uint8_t* row = to + (phase * (out_rows + band.more_rows) + i / w.stride_height) * band.pitch;
    if (h < 0 || h >= w.height) {
      __builtin_memset(row, call.x_zero, static_cast<size_t>(band.pitch));
    } else {
      copy_image_row(call, band, image + h * w.width * call.in_channels, row);
    }
  }
}

}  // namespace
}  // namespace lissome

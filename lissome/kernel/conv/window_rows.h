// Where the rows of a tile of a convolution read x: for each of the tile's pixels the corner of its window, and for
// each tap the address there, or that of zeros outside of x. Static: see split.h.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {
namespace {

// Keeps loops over few addresses out of registers of several: a load of two that were stored one by one waits until
// both stores have reached the cache, which takes longer than a tap of few inputs.
template <typename T>
inline __attribute__((always_inline)) const T* keep_scalar(const T* p) {
  asm("" : "+r"(p));
  return p;
}

template <typename T, int Rows>
struct WindowRows {
  const T* image[Rows];  // of the pixel's image
  int64_t top[Rows], left[Rows];

  inline __attribute__((always_inline)) void start(const Window& w, const T* x, int64_t channels, int64_t row) {
    int64_t ow, oh, n;
    if (row >> 32 == 0 && w.out_width >> 32 == 0 && w.out_height >> 32 == 0) {
      // Divisions of 32 bits take a third of the time, and a tile of few inputs little more.
      const auto place = static_cast<uint32_t>(row), width = static_cast<uint32_t>(w.out_width),
                 height = static_cast<uint32_t>(w.out_height), line = place / width;
      ow = place - line * width, n = line / height, oh = line - static_cast<uint32_t>(n) * height;
    } else {
      const int64_t line = row / w.out_width;
      ow = row - line * w.out_width, n = line / w.out_height, oh = line - n * w.out_height;
    }
    for (int r = 0; r < Rows; ++r) {
      image[r] = x + n * w.height * w.width * channels;
      top[r] = oh * w.stride_height - w.pad_height;
      left[r] = ow * w.stride_width - w.pad_width;
      if (++ow == w.out_width) {
        ow = 0;
        if (++oh == w.out_height) oh = 0, ++n;
      }
    }
  }

  inline __attribute__((always_inline)) void address(const Window& w, int64_t kh, int64_t kw, int64_t channels,
                                                     const T* zeros, const T* (&rows)[Rows]) const {
    for (int r = 0; r < Rows; ++r) {
      const int64_t h = top[r] + kh * w.dilation_height, v = left[r] + kw * w.dilation_width;
      const bool inside = static_cast<uint64_t>(h) < static_cast<uint64_t>(w.height) &&
                          static_cast<uint64_t>(v) < static_cast<uint64_t>(w.width);
      rows[r] = inside ? image[r] + (h * w.width + v) * channels : zeros;
    }
  }
};

}  // namespace
}  // namespace lissome

// Sums of columns over Floats, channels across registers.
#pragma once

#include "lissome/kernel/vector.h"

#include "lissome/kernel/activation_body.h"
#include "lissome/kernel/fold_columns.h"
#include "lissome/kernel/split.h"

namespace lissome {
namespace {

template <bool Weighted>
LISSOME_INLINE void fold_pixel(const FoldColumnsCall& call, int64_t n, int64_t oh, int64_t ow, float* y) {
  const Window& w = call.window;
  const int64_t taps = w.kernel_height * w.kernel_width, columns = Weighted ? 1 : taps;  // of a pixel
  const float* image = call.columns + n * w.height * w.width * columns * call.channels;
  for (int64_t c = 0; c < call.channels; c += Floats::kWidth) {
    const int64_t left = call.channels - c < Floats::kWidth ? call.channels - c : Floats::kWidth;
    Floats sum = call.bias ? load_first(call.bias + c, left) : zeros();
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      const int64_t ih = find_source(oh, kh, w.stride_height, w.pad_height, w.dilation_height, w.height);
      if (ih < 0) continue;
      for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
        const int64_t iw = find_source(ow, kw, w.stride_width, w.pad_width, w.dilation_width, w.width);
        if (iw < 0) continue;
        const int64_t pixel = ih * w.width + iw, tap = kh * w.kernel_width + kw;
        if constexpr (Weighted) {
          add_product(load_first(image + pixel * call.channels + c, left),
                      load_first(call.weight + tap * call.channels + c, left), sum);
        } else {
          sum = sum + load_first(image + (pixel * taps + tap) * call.channels + c, left);
        }
      }
    }
    store_first(y + c, activate_vector(call.epilogue, sum), left);
  }
}

LISSOME_INLINE void run_fold_columns(const FoldColumnsCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    float* y = call.y + row * call.channels;
    if (call.weight) {
      fold_pixel<true>(call, n, oh, ow, y);
    } else {
      fold_pixel<false>(call, n, oh, ow, y);
    }
  }
}

}  // namespace
}  // namespace lissome

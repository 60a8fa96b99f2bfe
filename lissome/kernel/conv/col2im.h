// The second half of a transposed convolution of channels-last values (1-D with height 1). The first half is a linear
// layer over pixels: for each pixel of x its products with every tap of the kernel, a row of `columns`. This one
// gathers, for each pixel of y, the products that fall on it:
//   y[n, oh, ow, c] = act(bias[c] + sum of columns[n, ih, iw, kh, kw, c] over all
//                         oh = ih*stride_h - pad_h + kh*dilation_h, ow = ...)
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {

struct Col2ImCall {
  const float* columns = nullptr;  // [batch, height, width, kernel_height * kernel_width, channels]
  const float* bias = nullptr;     // [channels], or null
  float* y = nullptr;              // [batch, out_height, out_width, channels]
  int64_t channels = 0;
  Window window;
  Epilogue epilogue;
};

// For one axis: the place in x whose tap `tap` falls on `out`; -1 when there is none. Static: see split.h.
[[maybe_unused]] static inline int64_t find_source(int64_t out, int64_t tap, int64_t stride, int64_t pad,
                                                   int64_t dilation, int64_t size) {
  const int64_t at = out + pad - tap * dilation;
  return at < 0 || at % stride != 0 || at / stride >= size ? -1 : at / stride;
}

}  // namespace lissome

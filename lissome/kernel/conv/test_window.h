// Windows of kernel tests.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {

// Fills in the output sizes, from padding on both sides.
inline Window finish_window(Window w, bool transposed = false) {
  const int64_t tall = w.dilation_height * (w.kernel_height - 1), wide = w.dilation_width * (w.kernel_width - 1);
  if (transposed) {
    w.out_height = (w.height - 1) * w.stride_height - 2 * w.pad_height + tall + 1;
    w.out_width = (w.width - 1) * w.stride_width - 2 * w.pad_width + wide + 1;
  } else {
    w.out_height = (w.height + 2 * w.pad_height - tall - 1) / w.stride_height + 1;
    w.out_width = (w.width + 2 * w.pad_width - wide - 1) / w.stride_width + 1;
  }
  return w;
}

// Of a square image, with the border that keeps its side at stride 1 where the kernel is odd.
inline Window square(int64_t batch, int64_t side, int64_t kernel, int64_t stride) {
  return {.batch = batch,
          .height = side,
          .width = side,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .stride_height = stride,
          .stride_width = stride,
          .pad_height = kernel / 2,
          .pad_width = kernel / 2};
}

}  // namespace lissome

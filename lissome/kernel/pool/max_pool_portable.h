// What the portable forms of the gradient of max pooling share with those that read it without its being made. Static:
// see split.h.
#pragma once

#include "lissome/kernel/isa/portable_output.h"
#include "lissome/kernel/pool/max_pool.h"

namespace lissome {
namespace {

// The window along one dimension whose tap `tap` is position `at`; -1: none.
inline int64_t find_window(int64_t at, int64_t tap, int64_t outputs, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t corner = at + pad - tap * dilation;
  return corner >= 0 && corner % stride == 0 && corner / stride < outputs ? corner / stride : -1;
}

// Channel c of a pixel of dx. The last tap first: its window comes first.
template <typename T>
float sum_gradient(const MaxPoolGradientCallOf<T>& call, int64_t pixel, int64_t c) {
  const Window& w = call.window;
  const int64_t v = pixel % w.width, h = pixel / w.width % w.height, n = pixel / w.width / w.height;
  float sum = 0;
  for (int64_t tap = w.kernel_height * w.kernel_width - 1; tap >= 0; --tap) {
    const int64_t oh =
        find_window(h, tap / w.kernel_width, w.out_height, w.stride_height, w.pad_height, w.dilation_height);
    const int64_t ow = find_window(v, tap % w.kernel_width, w.out_width, w.stride_width, w.pad_width, w.dilation_width);
    if (oh < 0 || ow < 0) continue;
    const int64_t at = ((n * w.out_height + oh) * w.out_width + ow) * call.channels + c;
    if (call.indices[at] == tap) sum += static_cast<float>(widen_portable(call.dy[at]));
  }
  return sum;
}

}  // namespace
}  // namespace lissome

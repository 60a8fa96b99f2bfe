// The portable forms.
#include "lissome/kernel/pool/max_pool.h"

#include <cmath>
#include <limits>

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"
#include "lissome/kernel/pool/kernel_versions.h"
#include "lissome/kernel/pool/max_pool_portable.h"

namespace lissome {
namespace {

// visit(position in x, tap) for the taps of a window inside of x; positions in pixels.
template <typename Visit>
void visit_taps(const Window& w, int64_t row, const Visit& visit) {
  const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
  for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
    const int64_t h = oh * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
    const int64_t v = ow * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
    if (h >= 0 && h < w.height && v >= 0 && v < w.width) visit((n * w.height + h) * w.width + v, tap);
  }
}

template <typename T>
void find_indices(const MaxPoolCallOf<T>& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t c = 0; c < call.channels; ++c) {
      double largest = -std::numeric_limits<double>::infinity();
      int64_t place = -1;
      visit_taps(w, row, [&](int64_t pixel, int64_t tap) {
        const double x = widen_portable(call.x[pixel * call.channels + c]);
        if (place < 0) place = tap;
        if (x > largest || std::isnan(x)) largest = x, place = tap;
      });
      narrow_portable(largest, call.y[row * call.channels + c]);
      call.indices[row * call.channels + c] = static_cast<uint8_t>(place);
    }
  }
}

template <typename T>
void spread_gradient(const MaxPoolGradientCallOf<T>& call, int part, int parts) {
  const Window& w = call.window;
  const Range pixels = split_evenly(w.batch * w.height * w.width, part, parts);
  for (int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
    for (int64_t c = 0; c < call.channels; ++c)
      narrow_portable(sum_gradient(call, pixel, c), call.dx[pixel * call.channels + c]);
  }
}

}  // namespace

void max_pool_indices_portable(const MaxPoolCall& call, int part, int parts) { find_indices(call, part, parts); }
void max_pool_indices_bf16_portable(const MaxPoolBf16Call& call, int part, int parts) {
  find_indices(call, part, parts);
}
void max_pool_gradient_portable(const MaxPoolGradientCall& call, int part, int parts) {
  spread_gradient(call, part, parts);
}
void max_pool_gradient_bf16_portable(const MaxPoolGradientBf16Call& call, int part, int parts) {
  spread_gradient(call, part, parts);
}

}  // namespace lissome

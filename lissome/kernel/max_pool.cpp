// The portable forms.
#include "lissome/kernel/max_pool.h"

#include <cmath>
#include <limits>

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/split.h"

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

}  // namespace

void max_pool_places_portable(const MaxPoolCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t c = 0; c < call.channels; ++c) {
      float largest = -std::numeric_limits<float>::infinity();
      int64_t place = -1;
      visit_taps(w, row, [&](int64_t pixel, int64_t tap) {
        const float x = call.x[pixel * call.channels + c];
        if (place < 0) place = tap;
        if (x > largest || std::isnan(x)) largest = x, place = tap;
      });
      call.y[row * call.channels + c] = largest;
      call.places[row * call.channels + c] = static_cast<uint8_t>(place);
    }
  }
}

// Channels are shared: windows overlap.
void max_pool_gradient_portable(const MaxPoolGradientCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range channels = split_evenly(call.channels, part, parts);
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    for (int64_t pixel = 0; pixel < w.batch * w.height * w.width; ++pixel) call.dx[pixel * call.channels + c] = 0;
    for (int64_t row = 0; row < w.batch * w.out_height * w.out_width; ++row) {
      visit_taps(w, row, [&](int64_t pixel, int64_t tap) {
        if (call.places[row * call.channels + c] == tap)
          call.dx[pixel * call.channels + c] += call.dy[row * call.channels + c];
      });
    }
  }
}

}  // namespace lissome

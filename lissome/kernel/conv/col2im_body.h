// Sums of columns over Floats, channels across registers.
#pragma once

#include "lissome/kernel/isa/vector.h"

#include "lissome/kernel/conv/col2im.h"
#include "lissome/kernel/conv/phase_walk.h"
#include "lissome/kernel/elementwise/activation_body.h"

namespace lissome {
namespace {

LISSOME_INLINE void fold_pixel(const Col2ImCall& call, const float* image, const Meeting& above, const Meeting& beside,
                               float* y) {
  const Window& w = call.window;
  const int64_t taps = w.kernel_height * w.kernel_width;
  for (int64_t c = 0; c < call.channels; c += Floats::kWidth) {
    const int64_t left = call.channels - c < Floats::kWidth ? call.channels - c : Floats::kWidth;
    Floats sum = call.bias ? load_first(call.bias + c, left) : zeros();
    for (int64_t i = 0; i < above.count; ++i) {
      const int64_t line = (above.at + i * above.at_step) * w.width;
      const int64_t first = (above.tap - i * above.tap_step) * w.kernel_width;
      for (int64_t j = 0; j < beside.count; ++j) {
        const int64_t pixel = line + beside.at + j * beside.at_step, tap = first + beside.tap - j * beside.tap_step;
        sum = sum + load_first(image + (pixel * taps + tap) * call.channels + c, left);
      }
    }
    store_first(y + c, activate_vector(call.epilogue, sum), left);
  }
}

LISSOME_INLINE void run_col2im(const Col2ImCall& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t image_size = w.height * w.width * w.kernel_height * w.kernel_width * call.channels;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  walk_phases(w, rows, [&](int64_t row, int64_t n, const Meeting& above, const Meeting& beside) {
    fold_pixel(call, call.columns + n * image_size, above, beside, call.y + row * call.channels);
  });
}

}  // namespace
}  // namespace lissome

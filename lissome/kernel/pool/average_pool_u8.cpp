// The portable form.
#include "lissome/kernel/pool/average_pool_u8.h"

#include "lissome/kernel/isa/portable_output_u8s8.h"
#include "lissome/kernel/pool/kernel_versions.h"
#include "lissome/kernel/pool/pool_window.h"

namespace lissome {
namespace {

uint8_t average_one(const AveragePoolU8Call& call, const uint8_t* image, const PoolWindow& at, int64_t channel) {
  const Window& w = call.window;
  int32_t sum = 0;
  for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
    for (int64_t u = at.columns.begin; u < at.columns.end; ++u) {
      sum += image[((at.top + h) * w.width + at.left + u) * call.channels + channel] - call.x_zero;
    }
  }
  return quantize_one(static_cast<float>(sum) * (call.x_scale / at.divisor), call.out_inverse, call.out_zero);
}

}  // namespace

void average_pool_u8_portable(const AveragePoolU8Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range pixels = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
    const int64_t ow = pixel % w.out_width, oh = pixel / w.out_width % w.out_height;
    const int64_t n = pixel / w.out_width / w.out_height;
    const PoolWindow at = find_pool_window(call, oh, ow);
    const uint8_t* image = static_cast<const uint8_t*>(call.x) + n * w.height * w.width * call.channels;
    uint8_t* y = static_cast<uint8_t*>(call.y) + pixel * call.channels;
    for (int64_t c = 0; c < call.channels; ++c) y[c] = average_one(call, image, at, c);
  }
}

}  // namespace lissome

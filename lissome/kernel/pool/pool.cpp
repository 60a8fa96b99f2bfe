// The portable forms.
#include "lissome/kernel/isa/portable_output.h"
#include "lissome/kernel/pool/kernel_versions.h"
#include "lissome/kernel/pool/pool_window.h"

namespace lissome {
namespace {

double widen_portable(uint8_t value) { return value; }
void narrow_portable(double value, uint8_t& to) { to = static_cast<uint8_t>(value); }

template <typename T>
double pool_one(const PoolCall& call, const T* image, const PoolWindow& at, int64_t c) {
  const Window& w = call.window;
  double sum = 0, largest = 0;
  bool first = true;
  for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
    for (int64_t u = at.columns.begin; u < at.columns.end; ++u) {
      const int64_t y = at.top + h * w.dilation_height, x = at.left + u * w.dilation_width;
      const double value = widen_portable(image[(y * w.width + x) * call.channels + c]);
      sum += value;
      if (first || value > largest || value != value) largest = largest != largest ? largest : value;
      first = false;
    }
  }
  return call.average ? sum / at.divisor : largest;
}

template <typename T>
void pool_all(const PoolCall& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    const PoolWindow at = find_pool_window(call, oh, ow);
    const T* image = static_cast<const T*>(call.x) + n * w.height * w.width * call.channels;
    for (int64_t c = 0; c < call.channels; ++c) {
      narrow_portable(pool_one(call, image, at, c), static_cast<T*>(call.y)[row * call.channels + c]);
    }
  }
}

}  // namespace

void pool_bf16_portable(const PoolCall& call, int part, int parts) { pool_all<uint16_t>(call, part, parts); }
void pool_f32_portable(const PoolCall& call, int part, int parts) { pool_all<float>(call, part, parts); }
void pool_u8_portable(const PoolCall& call, int part, int parts) { pool_all<uint8_t>(call, part, parts); }

}  // namespace lissome

// The portable forms.
#include <cmath>

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/pool_window.h"

namespace lissome {
namespace {

template <typename T>
T pool_one(const PoolCall& call, const T* image, const PoolWindow& at, int64_t c) {
  const Window& w = call.window;
  double sum = 0;
  bool first = true;
  T largest = 0;
  for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
    for (int64_t u = at.columns.begin; u < at.columns.end; ++u) {
      const int64_t y = at.top + h * w.dilation_height, x = at.left + u * w.dilation_width;
      const T value = image[(y * w.width + x) * call.channels + c];
      sum += value;
      if (first || value > largest || value != value) largest = largest != largest ? largest : value;
      first = false;
    }
  }
  return call.average ? static_cast<T>(sum / at.divisor) : largest;
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
      static_cast<T*>(call.y)[row * call.channels + c] = pool_one(call, image, at, c);
    }
  }
}

}  // namespace

void pool_f32_portable(const PoolCall& call, int part, int parts) { pool_all<float>(call, part, parts); }
void pool_u8_portable(const PoolCall& call, int part, int parts) { pool_all<uint8_t>(call, part, parts); }

}  // namespace lissome

// Packing, and the portable form.
#include "lissome/kernel/depthwise/depthwise_u8s8.h"

#include <cstring>

#include "lissome/kernel/depthwise/depthwise_strip.h"
#include "lissome/kernel/depthwise/kernel_versions.h"
#include "lissome/kernel/depthwise/portable_windows_u8s8.h"

namespace lissome {
namespace {

int64_t panel_bytes(const Window& w) { return strip_groups(w) * w.kernel_width * kStripColumn; }

int64_t weight_offset(const Window& w, int64_t c, int64_t kh, int64_t kw) {
  return c / kU8S8Panel * panel_bytes(w) + (kh / 4 * w.kernel_width + kw) * kStripColumn + c % kU8S8Panel * 4 + kh % 4;
}

}  // namespace

bool takes_depthwise_u8s8(const Window& window) { return strip_span(window) <= most_columns(window); }

int64_t packed_depthwise_u8s8_size(int64_t channels, const Window& window) {
  return (channels + kU8S8Panel - 1) / kU8S8Panel * panel_bytes(window);
}

void pack_depthwise_u8s8(const int8_t* weight, int64_t channels, const Window& window, int8_t* packed,
                         int32_t* weight_sums) {
  std::memset(packed, 0, static_cast<size_t>(packed_depthwise_u8s8_size(channels, window)));
  for (int64_t c = 0; c < channels; ++c) {
    weight_sums[c] = 0;
    for (int64_t kh = 0; kh < window.kernel_height; ++kh) {
      for (int64_t kw = 0; kw < window.kernel_width; ++kw) {
        const int8_t value = weight[(c * window.kernel_height + kh) * window.kernel_width + kw];
        packed[weight_offset(window, c, kh, kw)] = value;
        weight_sums[c] += value;
      }
    }
  }
}

void depthwise_u8s8_portable(const DepthwiseU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  run_windows_portable(call, part, parts, [&](int64_t c, int64_t tap, const uint8_t* pixel) {
    const int32_t x = pixel != nullptr ? pixel[c] : call.x_zero;
    return static_cast<uint32_t>(x * call.weight[weight_offset(w, c, tap / w.kernel_width, tap % w.kernel_width)]);
  });
}

}  // namespace lissome

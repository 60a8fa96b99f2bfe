// Packing, and the portable form.
#include "lissome/kernel/depthwise/depthwise_u8s8.h"

#include <cstring>

#include "lissome/kernel/depthwise/depthwise_strip.h"
#include "lissome/kernel/depthwise/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output_u8s8.h"

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
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t c = 0; c < call.channels; ++c) {
      uint32_t sum = 0;
      for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
        const int64_t kh = tap / w.kernel_width, kw = tap % w.kernel_width;
        const int64_t h = oh * w.stride_height - w.pad_height + kh * w.dilation_height;
        const int64_t v = ow * w.stride_width - w.pad_width + kw * w.dilation_width;
        const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
        const int32_t x = inside ? call.x[((n * w.height + h) * w.width + v) * call.channels + c] : call.x_zero;
        sum += static_cast<uint32_t>(x * call.weight[weight_offset(w, c, kh, kw)]);
      }
      finish_one(call, row, c, sum);
    }
  }
}

}  // namespace lissome

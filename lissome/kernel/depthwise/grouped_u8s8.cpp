// Packing, and the portable form.
#include "lissome/kernel/depthwise/grouped_u8s8.h"

#include <cstring>

#include "lissome/kernel/depthwise/grouped_strip.h"
#include "lissome/kernel/depthwise/kernel_versions.h"
#include "lissome/kernel/depthwise/portable_windows_u8s8.h"

namespace lissome {
namespace {

// Of input `k` of the group of channel `c`, for tap `tap`.
int64_t weight_offset(const Window& w, int64_t group, int64_t c, int64_t tap, int64_t k) {
  const int64_t beside = group < 4 ? c / group * group % 4 : 0;  // channels of the four before the group
  return c / kU8S8Panel * grouped_panel_bytes(w, group) + (tap * count_fours(group) + k / 4) * kGroupedFour +
         c % kU8S8Panel * 4 + (beside + k) % 4;
}

}  // namespace

bool takes_grouped_u8s8(int64_t inputs, int64_t outputs, const Window& window) {
  const bool known = inputs == 2 || inputs == 4 || inputs == 8 || inputs == 16 || inputs == 32;
  return known && inputs == outputs && window.kernel_height <= kGroupedLines &&
         grouped_columns(window, kGroupedPixels) <= kGroupedBytes / kU8S8Panel / window.kernel_height;
}

int64_t packed_grouped_u8s8_size(int64_t channels, int64_t group, const Window& window) {
  return (channels + kU8S8Panel - 1) / kU8S8Panel * grouped_panel_bytes(window, group);
}

void pack_grouped_u8s8(const int8_t* weight, int64_t channels, int64_t group, const Window& window, int8_t* packed,
                       int32_t* weight_sums) {
  std::memset(packed, 0, static_cast<size_t>(packed_grouped_u8s8_size(channels, group, window)));
  const int64_t taps = window.kernel_height * window.kernel_width;
  for (int64_t c = 0; c < channels; ++c) {
    weight_sums[c] = 0;
    for (int64_t k = 0; k < group; ++k) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int8_t value = weight[(c * group + k) * taps + tap];
        packed[weight_offset(window, group, c, tap, k)] = value;
        weight_sums[c] += value;
      }
    }
  }
}

void grouped_u8s8_portable(const GroupedU8S8Call& call, int part, int parts) {
  run_windows_portable(call, part, parts, [&](int64_t c, int64_t tap, const uint8_t* pixel) {
    uint32_t sum = 0;
    for (int64_t k = 0; k < call.group; ++k) {
      const int32_t x = pixel != nullptr ? pixel[c / call.group * call.group + k] : call.x_zero;
      sum += static_cast<uint32_t>(x * call.weight[weight_offset(call.window, call.group, c, tap, k)]);
    }
    return sum;
  });
}

}  // namespace lissome

// What a part of the int8 depthwise convolution lays beside each other before it multiplies: of a panel of channels,
// four rows of x a group, the columns that a strip of neighbouring pixels reads. Static: see split.h.
#pragma once

#include "lissome/kernel/depthwise/depthwise_u8s8.h"

namespace lissome {
namespace {

constexpr int64_t kStripBytes = 16 * 1024;        // half of the first level of cache
constexpr int64_t kStripColumn = 4 * kU8S8Panel;  // bytes

inline int64_t strip_groups(const Window& w) { return (w.kernel_height + 3) / 4; }
inline int64_t strip_span(const Window& w) { return (w.kernel_width - 1) * w.dilation_width + 1; }
// Of one pixel more than none.
inline int64_t most_columns(const Window& w) { return kStripBytes / kStripColumn / strip_groups(w); }

[[maybe_unused]] inline int64_t most_strip_pixels(const Window& w) {
  return (most_columns(w) - strip_span(w)) / w.stride_width + 1;
}

}  // namespace
}  // namespace lissome

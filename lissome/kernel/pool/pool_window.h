// The part of a pooling window that lies inside of x, and how many elements an average divides by. Static: see split.h.
#pragma once

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/pool/pool.h"

namespace lissome {
namespace {

struct PoolWindow {
  int64_t top, left;
  Range rows, columns;  // of the kernel window, inside of x
  float divisor;
};

inline Range clip_window(int64_t corner, int64_t size, int64_t kernel, int64_t dilation) {
  Range range = {0, kernel};
  if (corner < 0) range.begin = (-corner + dilation - 1) / dilation;
  if (corner + (kernel - 1) * dilation >= size) range.end = corner < size ? (size - 1 - corner) / dilation + 1 : 0;
  // Windows outside of x hold nothing.
  if (range.begin >= range.end) return {0, 0};
  return range;
}

// Share `i` of `count` that an adaptive pool takes of `size` elements; neighbours may overlap.
inline Range share_out(int64_t size, int64_t count, int64_t i) {
  return {i * size / count, ((i + 1) * size + count - 1) / count};
}

inline PoolWindow find_adaptive_window(const Window& w, int64_t oh, int64_t ow) {
  const Range rows = share_out(w.height, w.out_height, oh), columns = share_out(w.width, w.out_width, ow);
  const Range down = {0, rows.end - rows.begin}, across = {0, columns.end - columns.begin};
  return {rows.begin, columns.begin, down, across, static_cast<float>(down.end * across.end)};
}

inline PoolWindow find_pool_window(const PoolCall& call, int64_t oh, int64_t ow) {
  const Window& w = call.window;
  if (call.adaptive) return find_adaptive_window(w, oh, ow);
  PoolWindow found;
  found.top = oh * w.stride_height - w.pad_height;
  found.left = ow * w.stride_width - w.pad_width;
  found.rows = clip_window(found.top, w.height, w.kernel_height, w.dilation_height);
  found.columns = clip_window(found.left, w.width, w.kernel_width, w.dilation_width);
  int64_t count = (found.rows.end - found.rows.begin) * (found.columns.end - found.columns.begin);
  if (call.counts_padding) {
    const int64_t bottom = found.top + w.kernel_height, right = found.left + w.kernel_width;
    const int64_t lowest = w.height + call.pad_bottom, rightmost = w.width + call.pad_right;
    count = ((bottom < lowest ? bottom : lowest) - found.top) * ((right < rightmost ? right : rightmost) - found.left);
  }
  found.divisor = static_cast<float>(call.divisor != 0 ? call.divisor : count);
  return found;
}

}  // namespace
}  // namespace lissome

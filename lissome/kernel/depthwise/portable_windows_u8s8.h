// The portable form of int8 convolutions whose channels each read few others. Static: see split.h.
#pragma once

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output_u8s8.h"

namespace lissome {
namespace {

// `multiply(c, tap, pixel)` gives the products of channel c of y for one tap of its window; `pixel` has the channels of
// x there, null outside of x.
template <typename Call, typename Function>
void run_windows_portable(const Call& call, int part, int parts, const Function& multiply) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t c = 0; c < call.channels; ++c) {
      uint32_t sum = 0;
      for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
        const int64_t h = oh * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
        const int64_t v = ow * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
        const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
        sum += multiply(c, tap, inside ? call.x + ((n * w.height + h) * w.width + v) * call.channels : nullptr);
      }
      finish_one(call, row, c, sum);
    }
  }
}

}  // namespace
}  // namespace lissome

#include "lissome/kernel/depthwise.h"

#include "lissome/kernel/kernel_table_rows.h"
#include "lissome/kernel/portable_output.h"
#include "lissome/kernel/split.h"

namespace lissome {

void pack_depthwise(const float* weight, int64_t channels, int64_t taps, float* packed) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < taps; ++tap) packed[tap * channels + c] = weight[c * taps + tap];
  }
}

namespace {

template <typename Call>
void run_portable(const Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t c = 0; c < call.channels; ++c) {
      double sum = call.bias ? call.bias[c] : 0;
      for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
        const int64_t h = oh * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
        const int64_t v = ow * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
        if (h < 0 || h >= w.height || v < 0 || v >= w.width) continue;
        sum += widen_portable(call.x[((n * w.height + h) * w.width + v) * call.channels + c]) *
               call.weight[tap * call.channels + c];
      }
      store_portable(call, row, c, sum);
    }
  }
}

}  // namespace

void depthwise_f32_portable(const DepthwiseF32Call& call, int part, int parts) { run_portable(call, part, parts); }
void depthwise_bf16_portable(const DepthwiseBf16Call& call, int part, int parts) { run_portable(call, part, parts); }

}  // namespace lissome

#include "lissome/kernel/conv/col2im.h"
#include "lissome/kernel/depthwise/depthwise_transposed.h"

#include <type_traits>

#include "lissome/kernel/depthwise/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {

void pack_depthwise(const float* weight, int64_t channels, int64_t group, int64_t taps, float* packed) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < group; ++i) {
      for (int64_t tap = 0; tap < taps; ++tap) packed[(tap * group + i) * channels + c] = *weight++;
    }
  }
}

void pack_grouped_bf16(const uint16_t* weight, int64_t channels, int64_t group, int64_t taps, uint16_t* packed) {
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < group; ++i) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        packed[((tap * (group / 2) + i / 2) * channels + c) * 2 + i % 2] = *weight++;
      }
    }
  }
}

namespace {

// The weight of channel c for input `i` of its group.
template <typename Call>
double read_weight(const Call& call, int64_t tap, int64_t i, int64_t c) {
  if constexpr (std::is_same_v<Call, GroupedBf16Call>) {
    return widen_bf16(call.weight[((tap * (call.group / 2) + i / 2) * call.channels + c) * 2 + i % 2]);
  } else {
    return call.weight[(tap * call.group + i) * call.channels + c];
  }
}

// Along one axis: the place in x that `tap` reads for `out`; negative outside of x.
int64_t find_read(int64_t out, int64_t tap, int64_t stride, int64_t pad, int64_t dilation, int64_t size) {
  const int64_t at = out * stride - pad + tap * dilation;
  return at < size ? at : -1;
}

// `Find` is find_read(), or find_source() of transposed ones.
template <auto Find, typename Call>
void run_portable(const Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t c = 0; c < call.channels; ++c) {
      double sum = call.bias ? call.bias[c] : 0;
      for (int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
        const int64_t h = Find(oh, tap / w.kernel_width, w.stride_height, w.pad_height, w.dilation_height, w.height);
        const int64_t v = Find(ow, tap % w.kernel_width, w.stride_width, w.pad_width, w.dilation_width, w.width);
        if (h < 0 || v < 0) continue;
        const auto* x = call.x + ((n * w.height + h) * w.width + v) * call.channels + c / call.group * call.group;
        for (int64_t i = 0; i < call.group; ++i) sum += widen_portable(x[i]) * read_weight(call, tap, i, c);
      }
      store_portable(call, row, c, sum);
    }
  }
}

}  // namespace

void depthwise_f32_portable(const DepthwiseF32Call& call, int part, int parts) {
  run_portable<find_read>(call, part, parts);
}
void depthwise_bf16_portable(const DepthwiseBf16Call& call, int part, int parts) {
  run_portable<find_read>(call, part, parts);
}
void grouped_f32_portable(const DepthwiseF32Call& call, int part, int parts) {
  run_portable<find_read>(call, part, parts);
}
void grouped_bf16_portable(const GroupedBf16Call& call, int part, int parts) {
  run_portable<find_read>(call, part, parts);
}
void depthwise_transposed_f32_portable(const DepthwiseF32Call& call, int part, int parts) {
  run_portable<find_source>(call, part, parts);
}
void depthwise_transposed_bf16_portable(const DepthwiseBf16Call& call, int part, int parts) {
  run_portable<find_source>(call, part, parts);
}

}  // namespace lissome

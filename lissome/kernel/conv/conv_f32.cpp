// Packing, and the portable form.
#include "lissome/kernel/conv/conv_f32.h"

#include <cstring>

#include "lissome/kernel/conv/conv_planes.h"
#include "lissome/kernel/conv/kernel_versions.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/bf16x3_amx.h"
#include "lissome/kernel/isa/portable_output.h"

namespace lissome {

int64_t packed_conv_f32_size(int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps) {
  return groups * packed_linear_f32_size(out_channels / groups, in_channels / groups * taps);
}

void pack_conv_f32(const float* weight, int64_t out_channels, int64_t in_channels, int64_t groups, int64_t taps,
                   float* packed) {
  const int64_t inputs = in_channels / groups, outputs = out_channels / groups;
  const int64_t group_size = packed_linear_f32_size(outputs, inputs * taps);
  std::memset(packed, 0, static_cast<size_t>(groups * group_size) * sizeof(float));
  for (int64_t oc = 0; oc < out_channels; ++oc) {
    const int64_t n = oc % outputs;
    float* panel = packed + oc / outputs * group_size + n / kLinearPanel * kLinearPanel * inputs * taps;
    for (int64_t ic = 0; ic < inputs; ++ic) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        panel[(tap * inputs + ic) * kLinearPanel + n % kLinearPanel] = weight[(oc * inputs + ic) * taps + tap];
      }
    }
  }
}

int64_t conv_f32_scratch(const ConvF32Call& call) {
  return pays_on_tiles(call) ? find_conv_bf16x3(find_phases(call)).floats() : 0;
}

int64_t conv_f32_band(const ConvF32Call& call) {
  return (count_seen_lines(call.window, kBandLines) * call.window.width * call.in_channels + 15) / 16 * 16;
}

namespace {

double sum_window(const ConvF32Call& call, int64_t n, int64_t oh, int64_t ow, int64_t oc) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  const int64_t group = oc / outputs, taps = w.kernel_height * w.kernel_width;
  const float* panel = call.weight + group * packed_linear_f32_size(outputs, inputs * taps) +
                       oc % outputs / kLinearPanel * kLinearPanel * inputs * taps + oc % outputs % kLinearPanel;
  double sum = call.bias ? call.bias[oc] : 0;
  for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
    for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
      const int64_t h = oh * w.stride_height - w.pad_height + kh * w.dilation_height;
      const int64_t v = ow * w.stride_width - w.pad_width + kw * w.dilation_width;
      if (h < 0 || h >= w.height || v < 0 || v >= w.width) continue;
      const int64_t pixel = h * w.width + v, image = w.height * w.width, step = call.band ? image : 1;
      const float* x =
          call.x + n * image * call.in_channels + (call.band ? pixel : pixel * call.in_channels + group * inputs);
      const float* weight = panel + (kh * w.kernel_width + kw) * inputs * kLinearPanel;
      for (int64_t ic = 0; ic < inputs; ++ic) sum += static_cast<double>(x[ic * step]) * weight[ic * kLinearPanel];
    }
  }
  return sum;
}

}  // namespace

void conv_f32_portable(const ConvF32Call& call, int part, int parts) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t oc = 0; oc < call.out_channels; ++oc) {
      double sum = sum_window(call, n, oh, ow, oc);
      store_portable(call, row, oc, sum);
    }
  }
}

}  // namespace lissome

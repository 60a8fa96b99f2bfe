// Packing, and the portable forms.
#include "lissome/kernel/gemm/linear_u8s8.h"

#include <cmath>
#include <cstring>

#include "lissome/kernel/conv/image_band.h"
#include "lissome/kernel/gemm/kernel_versions.h"
#include "lissome/kernel/gemm/runs_u8s8.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/portable_output_u8s8.h"

namespace lissome {
namespace {

// Weight (n, tap, k) of a packed block.
int64_t weight_offset(const PanelU8S8& p, RunsU8S8 runs, int64_t n, int64_t tap, int64_t k) {
  const int64_t four = tap % runs.taps_per_run * p.tap_fours + k / 4;
  const int64_t step = tap / runs.taps_per_run * p.steps + four / p.step_fours;
  return output_offset(p, n) + step * p.step + four % p.step_fours * 64 + k % 4;
}

}  // namespace

RunsU8S8 choose_runs(const Window& window, int64_t groups) {
  const bool beside = groups == 1 && window.dilation_width == 1;
  return {window.kernel_height * window.kernel_width, beside ? window.kernel_width : 1};
}

int64_t packed_u8s8_size(int64_t outputs, int64_t inputs, RunsU8S8 runs) {
  return (outputs + kU8S8Panel - 1) / kU8S8Panel * measure_panel(inputs, runs).panel;
}

void pack_u8s8(const int8_t* weight, int64_t outputs, int64_t inputs, RunsU8S8 runs, int8_t* packed,
               int32_t* weight_sums) {
  const PanelU8S8 panel = measure_panel(inputs, runs);
  std::memset(packed, 0, static_cast<size_t>(packed_u8s8_size(outputs, inputs, runs)));
  for (int64_t n = 0; n < outputs; ++n) {
    weight_sums[n] = 0;
    for (int64_t k = 0; k < inputs; ++k) {
      for (int64_t tap = 0; tap < runs.taps; ++tap) {
        const int8_t value = weight[(n * inputs + k) * runs.taps + tap];
        packed[weight_offset(panel, runs, n, tap, k)] = value;
        weight_sums[n] += value;
      }
    }
  }
}

int64_t conv_u8s8_scratch(const Window& window, int64_t in_channels) { return band_scratch(window, in_channels); }

void linear_u8s8_portable(const LinearU8S8Call& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  const PanelU8S8 panel = measure_panel(call.inputs, {});
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    for (int64_t n = 0; n < call.outputs; ++n) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < call.inputs; ++k) {
        sum += static_cast<uint32_t>(call.x[m * call.x_stride + k] * call.weight[weight_offset(panel, {}, n, 0, k)]);
      }
      finish_one(call, m, n, sum);
    }
  }
}

void conv_u8s8_portable(const ConvU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  const RunsU8S8 runs = choose_runs(w, call.groups);
  const PanelU8S8 panel = measure_panel(inputs, runs);
  const int64_t block = packed_u8s8_size(outputs, inputs, runs);
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    for (int64_t oc = 0; oc < call.out_channels; ++oc) {
      const int64_t group = oc / outputs;
      uint32_t sum = 0;
      for (int64_t tap = 0; tap < runs.taps; ++tap) {
        const int64_t h = oh * w.stride_height - w.pad_height + tap / w.kernel_width * w.dilation_height;
        const int64_t v = ow * w.stride_width - w.pad_width + tap % w.kernel_width * w.dilation_width;
        const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
        const uint8_t* x =
            (inside ? call.x + ((n * w.height + h) * w.width + v) * call.in_channels : call.border) + group * inputs;
        for (int64_t k = 0; k < inputs; ++k) {
          sum += static_cast<uint32_t>(x[k] *
                                       call.weight[group * block + weight_offset(panel, runs, oc % outputs, tap, k)]);
        }
      }
      finish_one(call, row, oc, sum);
    }
  }
}

void quantize_rows_portable(const QuantizeRowsCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    const auto x = [&](int64_t k) {
      const int64_t at = m * call.x_stride + k;
      const float value = call.x_bf16 ? widen_bf16(call.x_bf16[at]) : call.x[at];
      return call.factors        ? value * call.factors[k]
             : call.factors_bf16 ? value * widen_bf16(call.factors_bf16[k])
                                 : value;
    };
    uint8_t* y = call.y + m * call.y_stride;
    float low = 0, high = 0;
    bool finite = true;
    for (int64_t k = 0; k < call.inputs; ++k) {
      low = x(k) < low ? x(k) : low;
      high = x(k) > high ? x(k) : high;
      finite = finite && std::isfinite(x(k));
    }
    const float range = high - low;
    if (!finite || !std::isfinite(range)) {
      call.scales[m] = NAN;
      call.zeros[m] = 0;
      std::memset(y, 0, static_cast<size_t>(call.inputs));
      continue;
    }
    float scale = range / 255;
    if (scale < 1e-30f) scale = 1;
    const float inverse = 1 / scale;
    float zero = std::nearbyint(-low * inverse);
    zero = zero < 0 ? 0 : zero > 255 ? 255 : zero;
    call.scales[m] = scale;
    call.zeros[m] = static_cast<int32_t>(zero);
    for (int64_t k = 0; k < call.inputs; ++k) y[k] = quantize_one(x(k), inverse, call.zeros[m]);
  }
}

void quantize_image_portable(const QuantizeImageCall& call, int part, int parts) {
  const Range pixels = split_evenly(call.batch * call.pixels, part, parts);
  for (int64_t i = pixels.begin; i < pixels.end; ++i) {
    const float* x = call.x + i / call.pixels * call.channels * call.pixels + i % call.pixels;
    for (int64_t c = 0; c < call.channels; ++c) {
      call.y[i * call.channels + c] = quantize_one(x[c * call.pixels], call.inverse, call.zero);
    }
  }
}

}  // namespace lissome

// The int8 linear and convolution over Ints, and the quantization of rows.
#pragma once

#include "lissome/kernel/tile_u8s8_body.h"
#include "lissome/kernel/window_rows.h"

namespace lissome {
namespace {

constexpr int64_t kChunkBytes = 256 * 1024;  // of x, per sweep over the panels
constexpr int64_t kImageChunk = 512;         // pixels per sweep over the panels

struct LinearTile {
  template <int Rows, int Vectors>
  static void run(const LinearU8S8Call& call, TilePlace place) {
    const PanelU8S8 panel = measure_panel(call.inputs, {});
    const uint8_t* rows[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) rows[r] = call.x + (place.row + r) * call.x_stride;
    const int8_t* columns[Vectors];
    find_columns(call.weight, panel, place.output, columns);
    WeightPlace at = {0, panel.step_fours};
    Ints sums[Rows][Vectors];
    clear_sums(sums);
    accumulate(rows, columns, panel, at, call.inputs, sums);
    store_tile(call, place, sums);
  }
};

struct ConvGroup : OutputU8S8 {
  const ConvU8S8Call* call;
  const uint8_t* x;  // channel 0 of the group
  const uint8_t* border;
  const int8_t* weight;  // packed, of the group
  int64_t inputs, taps_per_run;
  PanelU8S8 panel;
};

struct ConvTile {
  template <int Rows, int Vectors>
  static void run(const ConvGroup& group, TilePlace place) {
    const ConvU8S8Call& call = *group.call;
    const Window& w = call.window;
    const PanelU8S8& panel = group.panel;
    const int8_t* columns[Vectors];
    find_columns(group.weight, panel, place.output, columns);
    const bool shares = group.taps_per_run > 1;
    WindowRows<uint8_t, Rows> window;
    window.start(w, group.x, call.in_channels, place.row);
    Ints sums[Rows][Vectors];
    clear_sums(sums);
    WeightPlace at = {0, panel.step_fours};
    int64_t run = 0;
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
        if (kw == 0 || !shares) at = {run++ * panel.steps * panel.step, panel.step_fours};
        const uint8_t* rows[Rows];
        window.address(w, kh, kw, call.in_channels, group.border, rows);
        accumulate(rows, columns, panel, at, group.inputs, sums);
      }
    }
    store_tile(group, place, sums);
  }
};

LISSOME_INLINE void run_linear_u8s8(const LinearU8S8Call& call, int part, int parts) {
  run_tiles<LinearTile>(call, call.rows, call.outputs, kChunkBytes / (call.inputs + 1), part, parts);
}

LISSOME_INLINE void run_conv_u8s8(const ConvU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  const RunsU8S8 runs = choose_runs(w, call.groups);
  const PanelU8S8 panel = measure_panel(inputs, runs);
  const int64_t block = (outputs + kU8S8Panel - 1) / kU8S8Panel * panel.panel;
  for (int64_t g = 0; g < call.groups; ++g) {
    ConvGroup group;
    static_cast<OutputU8S8&>(group) = call;
    group.y = static_cast<uint8_t*>(call.y) + g * outputs * (call.narrows ? 2 : call.out_inverse == 0 ? 4 : 1);
    group.multiplier += g * outputs;
    group.weight_sums += g * outputs;
    if (group.bias) group.bias += g * outputs;
    if (group.residual) group.residual += g * outputs;
    if (group.residual_bf16) group.residual_bf16 += g * outputs;
    if (group.residual_u8) group.residual_u8 += g * outputs;
    group.call = &call;
    group.x = call.x + g * inputs;
    group.border = call.border + g * inputs;
    group.weight = call.weight + g * block;
    group.inputs = inputs, group.taps_per_run = runs.taps_per_run, group.panel = panel;
    run_tiles<ConvTile>(group, w.batch * w.out_height * w.out_width, outputs, kImageChunk, part, parts);
  }
}

// `x` is f32 or bf16.
template <typename Item>
LISSOME_INLINE void quantize_row(const QuantizeRowsCall& call, const Item* x, int64_t m) {
  uint8_t* y = call.y + m * call.y_stride;
  Floats low = zeros(), high = zeros(), probe = zeros();
  for (int64_t k = 0; k < call.inputs; k += Floats::kWidth) {
    const int64_t left = call.inputs - k < Floats::kWidth ? call.inputs - k : Floats::kWidth;
    const Floats value = load_first(x + k, left);
    low = min_with(value, low);
    high = max_with(value, high);
    probe = multiply_add(value, zeros(), probe);  // NaN as soon as a value is NaN or infinite
  }
  const float smallest = -max_lanes(zeros() - low), range = max_lanes(high) - smallest;
  if (sum_lanes(probe) != 0 || !(range <= 3.402823466e38f)) {
    call.scales[m] = __builtin_nanf("");
    call.zeros[m] = 0;
    __builtin_memset(y, 0, static_cast<size_t>(call.inputs));
    return;
  }
  float scale = range / 255;
  if (scale < 1e-30f) scale = 1;
  const float inverse = 1 / scale;
  float zero = __builtin_nearbyintf(-smallest * inverse);
  zero = zero < 0 ? 0 : zero > 255 ? 255 : zero;
  call.scales[m] = scale;
  call.zeros[m] = static_cast<int32_t>(zero);
  for (int64_t k = 0; k < call.inputs; k += Floats::kWidth) {
    const int64_t left = call.inputs - k < Floats::kWidth ? call.inputs - k : Floats::kWidth;
    store_u8_first(y + k, quantize_vector(load_first(x + k, left), inverse, zero), left);
  }
}

LISSOME_INLINE void run_quantize_rows(const QuantizeRowsCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    if (call.x_bf16 != nullptr) {
      quantize_row(call, call.x_bf16 + m * call.x_stride, m);
    } else {
      quantize_row(call, call.x + m * call.x_stride, m);
    }
  }
}

// `count` pixels, at most a register of them. Three channels make one number of f32 without loss; what its fourth byte
// writes is the next pixel's, which follows, but not behind the last.
LISSOME_INLINE void quantize_pixels(const QuantizeImageCall& call, const float* x, int64_t count, uint8_t* y) {
  const float zero = static_cast<float>(call.zero);
  const auto quantize = [&](int64_t c) {
    return quantize_vector(load_first(x + c * call.pixels, count), call.inverse, zero);
  };
  if (call.channels == 3) {
    alignas(64) int32_t fours[Floats::kWidth];
    const Floats two = multiply_add(quantize(1), fill(256.0f), quantize(0));
    store_whole(fours, multiply_add(quantize(2), fill(65536.0f), two));
    for (int64_t i = 0; i + 1 < count; ++i) __builtin_memcpy(y + 3 * i, fours + i, 4);
    __builtin_memcpy(y + 3 * (count - 1), fours + count - 1, 3);
    return;
  }
  for (int64_t c = 0; c < call.channels; ++c) {
    uint8_t bytes[Floats::kWidth];
    store_u8_first(bytes, quantize(c), count);
    for (int64_t i = 0; i < count; ++i) y[i * call.channels + c] = bytes[i];
  }
}

LISSOME_INLINE void run_quantize_image(const QuantizeImageCall& call, int part, int parts) {
  const Range pixels = split_evenly(call.batch * call.pixels, part, parts);
  for (int64_t i = pixels.begin; i < pixels.end;) {
    const int64_t image = i / call.pixels, at = i - image * call.pixels;
    int64_t count = call.pixels - at < pixels.end - i ? call.pixels - at : pixels.end - i;
    count = count < Floats::kWidth ? count : Floats::kWidth;
    quantize_pixels(call, call.x + image * call.channels * call.pixels + at, count, call.y + i * call.channels);
    i += count;
  }
}

}  // namespace
}  // namespace lissome

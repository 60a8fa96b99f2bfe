// The int8 linear and convolution over Ints, and the quantization of rows.
#pragma once

#include "lissome/kernel/isa/tile_u8s8_body.h"

#include "lissome/kernel/conv/image_band_body.h"

namespace lissome {
namespace {

constexpr int64_t kChunkBytes = 256 * 1024;  // of x, per sweep over the panels

struct LinearTile {
  template <int Rows, int Vectors>
  static void run(const LinearU8S8Call& call, TilePlace place, Ahead& ahead) {
    const PanelU8S8 panel = measure_panel(call.inputs, {});
    const uint8_t* rows[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) rows[r] = call.x + (place.row + r) * call.x_stride;
    const int8_t* columns[Vectors];
    find_columns(call.weight, panel, place.output, columns);
    Ints sums[Rows][Vectors];
    start_sums(call, place, sums);
    accumulate(rows, columns, panel, 0, call.inputs, sums, ahead);
    store_tile(call, place, sums);
  }
};

// One group of a convolution over a band of the image, which holds its border: a run of the window lies equally far
// from the corner of every window.
struct BandProduct : OutputU8S8 {
  const Window& window;
  ImageBand band;
  const uint8_t* x;      // of the band, channel 0 of the group
  const int8_t* weight;  // packed, of the group
  int64_t plane_lines;   // of the band
  int64_t first;         // row of the result that pixel 0 of the band is
  int64_t run_inputs;
  RunsU8S8 runs;
  PanelU8S8 panel;
};

struct ConvTile {
  template <int Rows, int Vectors>
  static void run(const BandProduct& product, TilePlace place, Ahead& ahead) {
    const Window& w = product.window;
    const PanelU8S8& panel = product.panel;
    const int8_t* columns[Vectors];
    find_columns(product.weight, panel, place.output, columns);
    const uint8_t* corners[Rows];
    find_corners(product, place.row, corners);
    place.row += product.first;
    Ints sums[Rows][Vectors];
    start_sums(product, place, sums);
    const int64_t across = w.kernel_width / product.runs.taps_per_run, tap = w.dilation_width * product.band.pixel;
    int64_t weight = 0, phase = 0, line = 0;
    for (int64_t kh = 0; kh < w.kernel_height; ++kh, phase += w.dilation_height) {
      for (; phase >= w.stride_height; phase -= w.stride_height) ++line;
      int64_t offset = (phase * product.plane_lines + line) * product.band.pitch;
      for (int64_t run = 0; run < across; ++run, offset += tap, weight += panel.steps * panel.step) {
        const uint8_t* rows[Rows];
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r) rows[r] = corners[r] + offset;
        accumulate(rows, columns, panel, weight, product.run_inputs, sums, ahead);
      }
    }
    store_tile(product, place, sums);
  }

  template <int Rows>
  static LISSOME_INLINE void find_corners(const BandProduct& product, int64_t pixel, const uint8_t* (&corners)[Rows]) {
    const Window& w = product.window;
    const int64_t step = w.stride_width * product.band.pixel;
    int64_t ow = pixel % w.out_width;
    const uint8_t* line = product.x + pixel / w.out_width * product.band.pitch;
    for (int r = 0; r < Rows; ++r) {
      corners[r] = line + ow * step;
      if (++ow == w.out_width) ow = 0, line += product.band.pitch;
    }
  }
};

LISSOME_INLINE void run_linear_u8s8(const LinearU8S8Call& call, int part, int parts) {
  run_tiles<LinearTile>(call, measure_panel(call.inputs, {}), call.rows, call.outputs, kChunkBytes / (call.inputs + 1),
                        part, parts);
}

// The outputs of group g, and its weights and inputs.
LISSOME_INLINE BandProduct describe_group(const ConvU8S8Call& call, const ImageBand& band, const uint8_t* x,
                                          int64_t g) {
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  OutputU8S8 output = call;
  output.y = static_cast<uint8_t*>(call.y) + g * outputs * (call.narrows ? 2 : call.out_inverse == 0 ? 4 : 1);
  output.multiplier += g * outputs;
  output.weight_sums += g * outputs;
  if (output.bias) output.bias += g * outputs;
  if (output.residual) output.residual += g * outputs;
  if (output.residual_bf16) output.residual_bf16 += g * outputs;
  if (output.residual_u8) output.residual_u8 += g * outputs;
  BandProduct product = {output, call.window, band, x + g * inputs};
  product.runs = choose_runs(call.window, call.groups);
  product.panel = measure_panel(inputs, product.runs);
  product.weight = call.weight + g * ((outputs + kU8S8Panel - 1) / kU8S8Panel * product.panel.panel);
  product.run_inputs = 4 * product.panel.tap_fours * product.runs.taps_per_run;
  return product;
}

// Parts share the outputs or the lines of y, as run_tiles() shares outputs and rows; bands are copied by every part.
LISSOME_INLINE void run_conv_u8s8(const ConvU8S8Call& call, int part, int parts) {
  if (is_linear(call)) return run_linear_u8s8(describe_linear(call), part, parts);
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  const Window& w = call.window;
  const ImageBand band = measure_band(w, call.in_channels);
  const int64_t outputs = call.out_channels / call.groups, lines = w.batch * w.out_height;
  const int64_t columns = (outputs + kColumn - 1) / kColumn;
  Range my_columns = {0, columns}, my_lines = {0, lines};
  const int64_t x_bytes = w.batch * w.height * w.width * call.in_channels;
  const int64_t weight_bytes = outputs * call.in_channels * w.kernel_height * w.kernel_width;
  if (shares_columns(lines, columns, parts, x_bytes, weight_bytes)) {
    my_columns = split_evenly(columns, part, parts);
  } else {
    my_lines = split_evenly(lines, part, parts);
  }
  auto* scratch = reinterpret_cast<uint8_t*>(call.scratch + part * band_scratch(w, call.in_channels));
  for (int64_t line = my_lines.begin, count = 0; line < my_lines.end; line += count) {
    const int64_t first = line % w.out_height, left = my_lines.end - line;
    count = w.out_height - first < band.out_rows ? w.out_height - first : band.out_rows;
    count = left < count ? left : count;
    copy_band(call, band, call.x + line / w.out_height * w.height * w.width * call.in_channels, first, count, scratch);
    for (int64_t g = 0; g < call.groups; ++g) {
      BandProduct product = describe_group(call, band, scratch, g);
      product.plane_lines = count + band.more_rows, product.first = line * w.out_width;
      for (int64_t column = my_columns.begin; column < my_columns.end; ++column) {
        const NextWeights next = {product.weight, product.panel, column + 1, my_columns.end};
        run_tile_column<ConvTile>(product, column * kColumn, outputs, {0, count * w.out_width}, next);
      }
    }
  }
}

LISSOME_INLINE const float* find_factors(const QuantizeRowsCall& call, const float*) { return call.factors; }
LISSOME_INLINE const uint16_t* find_factors(const QuantizeRowsCall& call, const uint16_t*) { return call.factors_bf16; }

// `x` is f32 or bf16.
template <bool Scaled = false, typename Item>
LISSOME_INLINE void quantize_row(const QuantizeRowsCall& call, const Item* x, int64_t m) {
  const Item* factors = find_factors(call, x);
  uint8_t* y = call.y + m * call.y_stride;
  const auto read = [&](int64_t k, int64_t left) {
    const Floats value = load_first(x + k, left);
    if constexpr (Scaled) return value * load_first(factors + k, left);
    return value;
  };
  Floats low = zeros(), high = zeros(), probe = zeros();
  for (int64_t k = 0; k < call.inputs; k += Floats::kWidth) {
    const int64_t left = call.inputs - k < Floats::kWidth ? call.inputs - k : Floats::kWidth;
    const Floats value = read(k, left);
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
    store_first(y + k, quantize_vector(read(k, left), inverse, zero), left);
  }
}

template <typename Item>
LISSOME_INLINE void quantize_rows_of(const QuantizeRowsCall& call, const Item* x, Range rows) {
  const bool scaled = find_factors(call, x) != nullptr;
  for (int64_t m = rows.begin; m < rows.end; ++m) {
    if (scaled) {
      quantize_row<true>(call, x + m * call.x_stride, m);
    } else {
      quantize_row(call, x + m * call.x_stride, m);
    }
  }
}

LISSOME_INLINE void run_quantize_rows(const QuantizeRowsCall& call, int part, int parts) {
  const Range rows = split_evenly(call.rows, part, parts);
  if (call.x_bf16 != nullptr) {
    quantize_rows_of(call, call.x_bf16, rows);
  } else {
    quantize_rows_of(call, call.x, rows);
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
    store_first(bytes, quantize(c), count);
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

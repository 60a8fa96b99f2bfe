// The gradients of a convolution over Floats. Data: each phase is a convolution on the tiles of conv_f32_body.h, whose
// rows are pixels of dx that lie apart. Weight: see conv_weight_body.h.
#pragma once

#include "lissome/kernel/conv/conv_f32_body.h"
#include "lissome/kernel/conv/conv_phases.h"
#include "lissome/kernel/conv/conv_weight_body.h"
#include "lissome/kernel/conv/pixel_map.h"

namespace lissome {
namespace {

struct PhaseGroup : ConvGroup {
  PixelMap map;
};

template <int Rows, int Vectors>
LISSOME_INLINE void finish_tile(const PhaseGroup& group, const Visit& visit, TilePlace place,
                                Floats (&sums)[Rows][Vectors]) {
  if (!visit.last) return store_sums(visit.kept_at(place), kLinearPanel, sums);
  int64_t rows[Rows];
  find_rows(group.map, place.row, Rows, rows);
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    const int64_t left = place.outputs - v * Floats::kWidth;
    if (left <= 0) break;
    const bool whole = left >= Floats::kWidth;
    const float* bias = group.bias ? group.bias + place.output + v * Floats::kWidth : nullptr;
    const Floats shift = !group.bias ? zeros() : whole ? load(bias) : load_first(bias, left);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      float* y = group.y + rows[r] * group.y_stride + place.output + v * Floats::kWidth;
      if (whole) {
        store(y, activate_vector(group.epilogue, sums[r][v] + shift));
      } else {
        store_first(y, activate_vector(group.epilogue, sums[r][v] + shift), left);
      }
    }
  }
}

// Pixels that no tap meets.
LISSOME_INLINE void fill_phase(const ConvDataF32Call& call, const PixelMap& map, int64_t pixels, int part, int parts) {
  const Range range = split_evenly(pixels, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    int64_t row;
    find_rows(map, i, 1, &row);
    float* dx = call.dx + row * call.in_channels;
    for (int64_t c = 0; c < call.in_channels; c += Floats::kWidth) {
      const int64_t left = call.in_channels - c;
      const int64_t count = left < Floats::kWidth ? left : Floats::kWidth;
      const Floats shift = call.bias ? load_first(call.bias + c, count) : zeros();
      store_first(dx + c, activate_vector(call.epilogue, shift), count);
    }
  }
}

LISSOME_INLINE void run_conv_data_f32(const ConvDataF32Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, panels = divide_up(inputs, kLinearPanel);
  const int64_t tap_size = call.groups * panels * kLinearPanel * (call.out_channels / call.groups);
  for_each_phase(w, w.height, w.width, [&](const Phase& phase, int64_t row, int64_t column, int64_t first_tap) {
    const int64_t lines = phase.rows.pixels, width = phase.columns.pixels;
    if (lines == 0 || width == 0) return;
    PhaseGroup start;
    start.map = {0,
                 width,
                 lines,
                 width,
                 lines,
                 row * w.width + column,
                 w.height * w.width,
                 w.stride_height * w.width,
                 w.stride_width};
    if (phase.taps() == 0) return fill_phase(call, start.map, w.batch * lines * width, part, parts);
    ConvF32Call conv;
    conv.x = call.dy, conv.y = call.dx, conv.bias = call.bias, conv.zeros = call.zeros;
    conv.weight = call.weight + first_tap * tap_size;
    conv.in_channels = call.out_channels, conv.out_channels = call.in_channels, conv.groups = call.groups;
    conv.y_stride = call.in_channels, conv.epilogue = call.epilogue;
    conv.window = {.batch = w.batch,
                   .height = w.out_height,
                   .width = w.out_width,
                   .out_height = lines,
                   .out_width = width,
                   .kernel_height = phase.rows.taps,
                   .kernel_width = phase.columns.taps,
                   .pad_height = phase.rows.pad,
                   .pad_width = phase.columns.pad,
                   .dilation_height = phase.rows.dilation,
                   .dilation_width = phase.columns.dilation};
    run_conv_groups(conv, start, part, parts);
  });
}

LISSOME_INLINE void run_conv_weight_f32(const ConvWeightF32Call& call, int part, int parts) {
  run_weight_units<WideWeightForm<float>>(call, part, parts);
}

}  // namespace
}  // namespace lissome

// The f32 convolution over Floats: the tiles of tile_f32_body.h, whose rows are pixels and whose sums run over taps.
#pragma once

#include "lissome/kernel/tile_f32_body.h"
#include "lissome/kernel/window_rows.h"

namespace lissome {
namespace {

constexpr int64_t kImageChunk = 256;  // pixels per sweep over the panels

// One group of a call.
struct ConvGroup : OutputF32 {
  const ConvF32Call* call;
  const float* x;       // channel 0 of the group
  const float* weight;  // packed, of the group
  int64_t inputs;
};

struct ConvTile {
  template <int Rows, int Vectors>
  static void run(const ConvGroup& group, TilePlace place) {
    const ConvF32Call& call = *group.call;
    const Window& w = call.window;
    const int64_t taps = w.kernel_height * w.kernel_width;
    const float* weight =
        group.weight + place.output / kLinearPanel * kLinearPanel * group.inputs * taps + place.output % kLinearPanel;
    WindowRows<float, Rows> window;
    window.start(w, group.x, call.in_channels, place.row);
    Floats sums[Rows][Vectors];
    clear_sums(sums);
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
        const float* rows[Rows];
        window.address(w, kh, kw, call.in_channels, call.zeros, rows);
        accumulate(rows, weight, group.inputs, sums);
        weight += group.inputs * kLinearPanel;
      }
    }
    store_tile(group, place, sums);
  }
};

LISSOME_INLINE void run_conv_f32(const ConvF32Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  const int64_t group_size =
      (outputs + kLinearPanel - 1) / kLinearPanel * kLinearPanel * inputs * w.kernel_height * w.kernel_width;
  for (int64_t g = 0; g < call.groups; ++g) {
    ConvGroup group;
    static_cast<OutputF32&>(group) = call;
    group.y += g * outputs;
    if (group.bias) group.bias += g * outputs;
    if (group.residual) group.residual += g * outputs;
    group.call = &call;
    group.x = call.x + g * inputs;
    group.weight = call.weight + g * group_size;
    group.inputs = inputs;
    run_tiles<ConvTile>(group, w.batch * w.out_height * w.out_width, outputs, kImageChunk, part, parts);
  }
}

}  // namespace
}  // namespace lissome

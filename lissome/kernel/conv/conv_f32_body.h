// The f32 convolution over Floats: the tiles of tile_f32_body.h, whose rows are pixels and whose sums run over taps.
#pragma once

#include "lissome/kernel/conv/conv_planes.h"
#include "lissome/kernel/conv/pixel_window.h"
#include "lissome/kernel/conv/window_rows.h"
#include "lissome/kernel/gemm/linear_f32_body.h"
#include "lissome/kernel/isa/tile_f32_body.h"

namespace lissome {
namespace {

constexpr int64_t kEdgeInputs = 64;  // rows of windows as short as this are copied at the edge of x

// One group of a call.
struct ConvGroup : OutputF32 {
  const ConvF32Call* call;
  const float* x;       // channel 0 of the group
  const float* weight;  // packed, of the group
  int64_t inputs;
  bool dense_rows;  // a row of a window within x is one run of inputs
};

// Where the rows of a tile read the inputs of their windows, run by run: runs are lines of taps where they lie one
// behind the other, else taps.
template <int Rows>
struct WindowRuns {
  const ConvGroup& group;
  const Window& w;
  WindowRows<float, Rows> window;
  const float* corner[Rows];  // where windows within x begin
  bool within = true, copied = false, lines = false;
  int64_t run, kh = 0, kw = 0, skipped = 0;  // the next run, and how many of its inputs are behind
  alignas(64) float edge[Rows * kEdgeInputs];

  // From input `begin` of the windows on. Divisions, which take longer than a tap of few inputs, stay out of the loop.
  LISSOME_INLINE WindowRuns(const ConvGroup& g, int64_t row, int64_t begin) : group(g), w(g.call->window) {
    const int64_t channels = group.call->in_channels;
    window.start(w, group.x, channels, row);
    const int64_t below = (w.kernel_height - 1) * w.dilation_height, beside = (w.kernel_width - 1) * w.dilation_width;
    for (int r = 0; r < Rows; ++r) {
      within &= window.left[r] >= 0 && window.left[r] + beside < w.width;
      within &= window.top[r] >= 0 && window.top[r] + below < w.height;
      corner[r] = window.image[r] + (window.top[r] * w.width + window.left[r]) * channels;
    }
    copied = !within && group.dense_rows && w.kernel_width * group.inputs <= kEdgeInputs;
    lines = group.dense_rows && (within || copied);
    run = lines ? w.kernel_width * group.inputs : group.inputs;
    if (begin == 0) return;
    const int64_t runs = begin / run;
    skipped = begin - runs * run;
    kh = lines ? runs : runs / w.kernel_width;
    kw = lines ? 0 : runs - kh * w.kernel_width;
  }

  // Returns how many inputs follow there.
  LISSOME_INLINE int64_t next(const float* (&rows)[Rows]) {
    const int64_t channels = group.call->in_channels, count = run - skipped;
    if (copied) {
      copy_edge(kh);
      for (int r = 0; r < Rows; ++r) rows[r] = edge + r * kEdgeInputs + skipped;
    } else if (within) {
      const int64_t at = (kh * w.dilation_height * w.width + kw * w.dilation_width) * channels + skipped;
      for (int r = 0; r < Rows; ++r) rows[r] = keep_scalar(corner[r]) + at;
    } else {
      window.address(w, kh, kw, channels, group.call->zeros, rows);
      for (int r = 0; r < Rows; ++r) rows[r] = keep_scalar(rows[r]) + skipped;
    }
    skipped = 0;
    if (lines || ++kw == w.kernel_width) kw = 0, ++kh;
    return count;
  }

  void copy_edge(int64_t kh) {
    for (int r = 0; r < Rows; ++r) {
      const int64_t h = window.top[r] + kh * w.dilation_height;
      const bool inside = static_cast<uint64_t>(h) < static_cast<uint64_t>(w.height);
      for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
        const int64_t v = window.left[r] + kw;
        const float* from = inside && static_cast<uint64_t>(v) < static_cast<uint64_t>(w.width)
                                ? window.image[r] + (h * w.width + v) * group.inputs
                                : group.call->zeros;
        for (int64_t c = 0; c < group.inputs; ++c) edge[r * kEdgeInputs + kw * group.inputs + c] = from[c];
      }
    }
  }
};

// `Group` is ConvGroup, or one that tells finish_tile() where its rows lie.
struct ConvTile {
  template <int Rows, int Vectors, typename Group>
  static void run(const Group& group, TilePlace place, Visit& visit) {
    const Window& w = group.call->window;
    const int64_t taps = w.kernel_height * w.kernel_width;
    const float* weight =
        group.weight + place.output / kLinearPanel * kLinearPanel * group.inputs * taps + place.output % kLinearPanel;
    WindowRuns<Rows> runs(group, place.row, visit.begin);
    Floats sums[Rows][Vectors];
    start_tile(visit, place, sums);
    for (int64_t k = visit.begin; k < visit.end;) {
      const float* rows[Rows];
      const int64_t run = runs.next(rows), left = visit.end - k;
      const int64_t count = run < left ? run : left;
      accumulate(rows, weight + k * kLinearPanel, count, sums, visit.ahead);
      k += count;
    }
    finish_tile(group, visit, place, sums);
  }
};

// `start` has what a group has beyond those of conv_f32.
template <typename Group>
LISSOME_INLINE void run_conv_groups(const ConvF32Call& call, const Group& start, int part, int parts) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, outputs = call.out_channels / call.groups;
  const int64_t sum = inputs * w.kernel_height * w.kernel_width;
  const int64_t group_size = (outputs + kLinearPanel - 1) / kLinearPanel * kLinearPanel * sum;
  // Windows overlap: a pixel adds to x what its stride passes over.
  const int64_t row_bytes = w.stride_height * w.stride_width * inputs * static_cast<int64_t>(sizeof(float));
  for (int64_t g = 0; g < call.groups; ++g) {
    Group group = start;
    static_cast<OutputF32&>(group) = call;
    group.y += g * outputs;
    if (group.bias) group.bias += g * outputs;
    if (group.residual) group.residual += g * outputs;
    group.call = &call;
    group.x = call.x + g * inputs;
    group.weight = call.weight + g * group_size;
    group.inputs = inputs;
    group.dense_rows = call.groups == 1 && w.dilation_width == 1;
    const TileSizes sizes = {w.batch * w.out_height * w.out_width, outputs, sum, row_bytes};
    run_tiles<ConvTile>(group, sizes, group.weight, part, parts);
  }
}

// Whether each pixel of y is a product of the pixel of x at its place.
LISSOME_INLINE bool is_linear(const ConvF32Call& call) {
  return call.groups == 1 && !call.band && keeps_pixels(call.window);
}

LISSOME_INLINE LinearF32Call describe_linear(const ConvF32Call& call) {
  const Window& w = call.window;
  LinearF32Call linear;
  static_cast<OutputF32&>(linear) = call;
  linear.x = call.x, linear.weight = call.weight;
  linear.rows = w.batch * w.height * w.width;
  linear.inputs = linear.x_stride = call.in_channels, linear.outputs = call.out_channels;
  return linear;
}

LISSOME_INLINE void run_conv_f32(const ConvF32Call& call, int part, int parts) {
  if (is_linear(call)) return run_linear_f32(describe_linear(call), part, parts);
  if (!call.band) return run_conv_groups(call, ConvGroup{}, part, parts);
  run_bands(call, part, parts, [](const ConvF32Call& some) { run_conv_groups(some, ConvGroup{}, 0, 1); });
}

}  // namespace
}  // namespace lissome

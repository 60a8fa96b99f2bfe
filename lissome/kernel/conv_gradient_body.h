// The gradients of a convolution over Floats. Data: each phase is a convolution on the tiles of conv_f32_body.h, whose
// rows are pixels of dx that lie apart. Weight: a tile of up to 6 numbers of the window and kTileVectors registers of
// outputs stays in registers while the pixels of a chunk go by.
#pragma once

#include "lissome/kernel/conv_f32_body.h"
#include "lissome/kernel/conv_phases.h"
#include "lissome/kernel/conv_weight_pieces.h"
#include "lissome/kernel/pixel_map.h"

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
    const float* bias = group.bias + place.output + v * Floats::kWidth;
    const Floats shift = !group.bias ? zeros() : whole ? load(bias) : load_first(bias, left);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      float* y = group.y + rows[r] * group.y_stride + place.output + v * Floats::kWidth;
      if (whole) {
        store(y, sums[r][v] + shift);
      } else {
        store_first(y, sums[r][v] + shift, left);
      }
    }
  }
}

// Pixels that no tap meets.
void fill_phase(const ConvDataF32Call& call, const PixelMap& map, int64_t pixels, int part, int parts) {
  const Range range = split_evenly(pixels, part, parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    int64_t row;
    find_rows(map, i, 1, &row);
    float* dx = call.dx + row * call.in_channels;
    for (int64_t c = 0; c < call.in_channels; ++c) dx[c] = call.bias ? call.bias[c] : 0.0f;
  }
}

LISSOME_INLINE void run_conv_data_f32(const ConvDataF32Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t inputs = call.in_channels / call.groups, panels = divide_up(inputs, kLinearPanel);
  const int64_t tap_size = call.groups * panels * kLinearPanel * (call.out_channels / call.groups);
  for_each_phase(w, [&](const Phase& phase, int64_t row, int64_t column, int64_t first_tap) {
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
    conv.y_stride = call.in_channels;
    conv.window = {.batch = w.batch,
                   .height = w.out_height,
                   .width = w.out_width,
                   .out_height = lines,
                   .out_width = width,
                   .kernel_height = phase.rows.taps,
                   .kernel_width = phase.columns.taps,
                   .pad_height = phase.rows.pad,
                   .pad_width = phase.columns.pad,
                   .dilation_height = w.dilation_height,
                   .dilation_width = w.dilation_width};
    run_conv_groups(conv, start, part, parts);
  });
}

// One chunk of pixels as it lies in scratch: steps in floats of x.
struct WeightPixels {
  int64_t images, lines, pixels;
  int64_t image_step, line_step, pixel_step;
};

// sums[Rows][Vectors] += x[.][row] * dy[.][register], over the pixels of the chunk. Sums lie 64 apart.
template <int Rows, int Vectors>
void add_weight_tile(const WeightPixels& at, const float* x, const float* dy, float* kept) {
  Floats sums[Rows][Vectors];
  load_sums(kept, kLinearPanel, sums);
  for (int64_t image = 0; image < at.images; ++image) {
    for (int64_t line = 0; line < at.lines; ++line) {
      const float* value = x + image * at.image_step + line * at.line_step;
      for (int64_t i = 0; i < at.pixels; ++i, value += at.pixel_step, dy += kLinearPanel) {
        Floats columns[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) columns[v] = load(dy + v * Floats::kWidth);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
          const Floats one = fill(value[r]);
#pragma GCC unroll 8
          for (int v = 0; v < Vectors; ++v) sums[r][v] = multiply_add(one, columns[v], sums[r][v]);
        }
      }
    }
  }
  store_sums(kept, kLinearPanel, sums);
}

// `rows` numbers of the window that lie side by side, in tiles as even as can be.
template <int Vectors>
void add_weight_rows(const WeightPixels& at, const float* x, const float* dy, float* kept, int64_t rows) {
  static_assert(kTileRows == 6);
  for (int64_t tiles = divide_up(rows, kTileRows); tiles > 0; --tiles) {
    const int64_t count = divide_up(rows, tiles);
    switch (count) {
      case 6: add_weight_tile<6, Vectors>(at, x, dy, kept); break;
      case 5: add_weight_tile<5, Vectors>(at, x, dy, kept); break;
      case 4: add_weight_tile<4, Vectors>(at, x, dy, kept); break;
      case 3: add_weight_tile<3, Vectors>(at, x, dy, kept); break;
      case 2: add_weight_tile<2, Vectors>(at, x, dy, kept); break;
      default: add_weight_tile<1, Vectors>(at, x, dy, kept); break;
    }
    x += count, kept += count * kLinearPanel, rows -= count;
  }
}

void add_weight_columns(const WeightPixels& at, const float* x, const float* dy, float* kept, int64_t rows,
                        int64_t outputs) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  for (int64_t n = 0; n < outputs; n += kColumn) {
    const int64_t vectors = divide_up(outputs - n, Floats::kWidth);
    if (vectors == 1) {
      add_weight_rows<1>(at, x, dy + n, kept + n, rows);
    } else if (vectors == 2 && kTileVectors > 2) {
      add_weight_rows<2>(at, x, dy + n, kept + n, rows);
    } else {
      add_weight_rows<kTileVectors>(at, x, dy + n, kept + n, rows);
    }
  }
}

// One unit; see conv_weight_pieces.h.
struct WeightUnit {
  const ConvWeightF32Call& call;
  const ConvWeightPieces& pieces;
  int64_t output, outputs;         // the first, of all groups; at most 64
  int64_t channel, input, inputs;  // the first of x; the first of the group, and how many
  int64_t split;
  float *dy, *band, *sums;

  // Lines [first, first + lines) of dy, 64 channels a pixel.
  void copy_dy(int64_t image, int64_t first, int64_t lines, float* to) const {
    const Window& w = call.window;
    const float* from = call.dy + (image * w.out_height + first) * w.out_width * call.out_channels + output;
    for (int64_t i = 0; i < lines * w.out_width; ++i, from += call.out_channels, to += kLinearPanel) {
      for (int64_t n = 0; n < kLinearPanel; n += Floats::kWidth) {
        const int64_t left = outputs - n;
        store(to + n, left >= Floats::kWidth ? load(from + n) : left > 0 ? load_first(from + n, left) : zeros());
      }
    }
  }

  void copy_pixel(const float* from, float* to) const {
    int64_t c = 0;
    for (; c + Floats::kWidth <= inputs; c += Floats::kWidth) store(to + c, load(from + c));
    if (c < inputs) store_first(to + c, load_first(from + c, inputs - c), inputs - c);
  }

  // The lines of x that lines [first, first + lines) of dy see, with zeros around.
  void copy_band(int64_t image, int64_t first, int64_t lines, float* to) const {
    const Window& w = call.window;
    const int64_t count = (lines - 1) * w.stride_height + (w.kernel_height - 1) * w.dilation_height + 1;
    const int64_t top = first * w.stride_height - w.pad_height, line_size = pieces.pitch * inputs;
    const int64_t begin = w.pad_width < pieces.pitch ? w.pad_width : pieces.pitch;
    const int64_t end = begin + w.width < pieces.pitch ? begin + w.width : pieces.pitch;
    for (int64_t i = 0; i < count; ++i, to += line_size) {
      const int64_t h = top + i;
      if (h < 0 || h >= w.height) {
        __builtin_memset(to, 0, static_cast<size_t>(line_size) * sizeof(float));
        continue;
      }
      const float* from = call.x + (image * w.height + h) * w.width * call.in_channels + channel;
      __builtin_memset(to, 0, static_cast<size_t>(begin * inputs) * sizeof(float));
      if (inputs == call.in_channels) {
        __builtin_memcpy(to + begin * inputs, from, static_cast<size_t>((end - begin) * inputs) * sizeof(float));
      } else {
        for (int64_t v = begin; v < end; ++v) copy_pixel(from + (v - begin) * call.in_channels, to + v * inputs);
      }
      __builtin_memset(to + end * inputs, 0, static_cast<size_t>((pieces.pitch - end) * inputs) * sizeof(float));
    }
  }

  void add_chunk(int64_t images, int64_t lines) const {
    const Window& w = call.window;
    const int64_t line = pieces.pitch * inputs;
    const WeightPixels at = {
        images, lines, w.out_width, pieces.band_lines * line, w.stride_height * line, w.stride_width * inputs};
    float* kept = sums;
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      const float* x = band + kh * w.dilation_height * line;
      // Neighbours in the window are neighbours in x.
      const int64_t runs = w.dilation_width == 1 ? 1 : w.kernel_width, run = w.kernel_width / runs * inputs;
      for (int64_t i = 0; i < runs; ++i, kept += run * kLinearPanel)
        add_weight_columns(at, x + i * w.dilation_width * inputs, dy, kept, run, outputs);
    }
  }

  void store_sums_of_unit() const {
    const int64_t taps = call.window.kernel_height * call.window.kernel_width;
    float* dw = call.dw + split * call.out_channels * pieces.inputs * taps;
    for (int64_t n = 0; n < outputs; ++n) {
      float* to = dw + ((output + n) * pieces.inputs + input) * taps;
      for (int64_t i = 0; i < inputs; ++i) {
        const float* from = sums + i * kLinearPanel + n;
        for (int64_t tap = 0; tap < taps; ++tap, from += inputs * kLinearPanel) *to++ = *from;
      }
    }
  }

  void run() const {
    const Window& w = call.window;
    const int64_t numbers = w.kernel_height * w.kernel_width * inputs * kLinearPanel;
    __builtin_memset(sums, 0, static_cast<size_t>(numbers) * sizeof(float));
    const Range chunks = split_evenly(pieces.chunks, static_cast<int>(split), static_cast<int>(call.splits));
    for (int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
      const int64_t image = chunk / pieces.image_chunks * pieces.images;
      const int64_t first = chunk % pieces.image_chunks * pieces.lines;
      const int64_t images = w.batch - image < pieces.images ? w.batch - image : pieces.images;
      const int64_t lines = w.out_height - first < pieces.lines ? w.out_height - first : pieces.lines;
      for (int64_t i = 0; i < images; ++i) {
        copy_dy(image + i, first, lines, dy + i * lines * w.out_width * kLinearPanel);
        copy_band(image + i, first, lines, band + i * pieces.band_lines * pieces.pitch * inputs);
      }
      add_chunk(images, lines);
    }
    store_sums_of_unit();
  }
};

LISSOME_INLINE void run_conv_weight_f32(const ConvWeightF32Call& call, int part, int parts) {
  const ConvWeightPieces pieces = find_weight_pieces(call);
  float* dy = call.scratch + part * (pieces.dy_size + pieces.band_size + pieces.sums_size);
  const int64_t group_units = pieces.panels * pieces.blocks;
  const Range units = split_evenly(call.groups * group_units * call.splits, part, parts);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const int64_t split = unit % call.splits, rest = unit / call.splits, group = rest / group_units;
    const int64_t input = rest % pieces.blocks * pieces.block, panel = rest / pieces.blocks % pieces.panels;
    const int64_t outputs = pieces.outputs - panel * kLinearPanel, inputs = pieces.inputs - input;
    WeightUnit{call,
               pieces,
               group * pieces.outputs + panel * kLinearPanel,
               outputs < kLinearPanel ? outputs : kLinearPanel,
               group * pieces.inputs + input,
               input,
               inputs < pieces.block ? inputs : pieces.block,
               split,
               dy,
               dy + pieces.dy_size,
               dy + pieces.dy_size + pieces.band_size}
        .run();
  }
}

}  // namespace
}  // namespace lissome

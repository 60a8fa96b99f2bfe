// The weight gradient of a convolution over Floats: a tile of up to 6 numbers of the window and kTileVectors registers
// of outputs stays in registers while the pixels of a chunk go by. The form says what items of x and dy lie in scratch
// and how they are multiplied: WideWeightForm as f32, another one (conv_weight_bf16_body.h) in pairs of pixels.
#pragma once

#include "lissome/kernel/conv/conv_weight_pieces.h"
#include "lissome/kernel/isa/tile_f32_body.h"
#include "lissome/kernel/isa/vector_bf16.h"

namespace lissome {
namespace {

// One chunk of pixels as it lies in scratch: steps in items of x.
struct WeightPixels {
  int64_t images, lines, pixels;
  int64_t image_step, line_step, pixel_step;
};

// A line of x that lies inside of the image, and where it goes: `pitch` pixels of which `pad` come before it.
template <typename T>
struct WeightLine {
  const T* from;  // its first pixel
  int64_t channels, inputs, width, pad, pitch, stride, taps;
};

template <typename T>
struct WideWeightForm {
  using Number = T;
  using Item = float;

  static constexpr int64_t count_dy_items(int64_t pixels) { return pixels * kLinearPanel; }

  static LISSOME_INLINE void copy_channels(const T* from, int64_t count, float* to) {
    int64_t c = 0;
    for (; c + Floats::kWidth <= count; c += Floats::kWidth) store(to + c, load(from + c));
    if (c < count) store_first(to + c, load_first(from + c, count - c), count - c);
  }

  // 64 channels a pixel, zeros beyond `outputs`.
  static LISSOME_INLINE void copy_dy_line(const T* from, int64_t channels, int64_t pixels, int64_t outputs, float* to) {
    for (int64_t i = 0; i < pixels; ++i, from += channels, to += kLinearPanel) {
      for (int64_t n = 0; n < kLinearPanel; n += Floats::kWidth) {
        const int64_t left = outputs - n;
        store(to + n, left >= Floats::kWidth ? load(from + n) : left > 0 ? load_first(from + n, left) : zeros());
      }
    }
  }

  static LISSOME_INLINE void copy_x_line(const WeightLine<T>& line, float* to) {
    const int64_t begin = line.pad < line.pitch ? line.pad : line.pitch, inputs = line.inputs;
    const int64_t end = begin + line.width < line.pitch ? begin + line.width : line.pitch;
    __builtin_memset(to, 0, static_cast<size_t>(begin * inputs) * sizeof(float));
    if (inputs == line.channels) {
      copy_channels(line.from, (end - begin) * inputs, to + begin * inputs);
    } else {
      for (int64_t v = begin; v < end; ++v) {
        copy_channels(line.from + (v - begin) * line.channels, inputs, to + v * inputs);
      }
    }
    __builtin_memset(to + end * inputs, 0, static_cast<size_t>((line.pitch - end) * inputs) * sizeof(float));
  }

  // sums[Rows][Vectors] += x[.][row] * dy[.][register], over the pixels of a line; dy goes on to the next.
  template <int Rows, int Vectors>
  static LISSOME_INLINE void add_line(const WeightPixels& at, const float* x, const float*& dy,
                                      Floats (&sums)[Rows][Vectors]) {
    for (int64_t i = 0; i < at.pixels; ++i, x += at.pixel_step, dy += kLinearPanel) {
      Floats columns[Vectors];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) columns[v] = load(dy + v * Floats::kWidth);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const Floats one = fill(x[r]);
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) sums[r][v] = multiply_add(one, columns[v], sums[r][v]);
      }
    }
  }
};

// Sums lie 64 apart.
template <typename Form, int Rows, int Vectors>
void add_weight_tile(const WeightPixels& at, const typename Form::Item* x, const typename Form::Item* dy, float* kept) {
  Floats sums[Rows][Vectors];
  load_sums(kept, kLinearPanel, sums);
  for (int64_t image = 0; image < at.images; ++image) {
    for (int64_t line = 0; line < at.lines; ++line) {
      Form::add_line(at, x + image * at.image_step + line * at.line_step, dy, sums);
    }
  }
  store_sums(kept, kLinearPanel, sums);
}

// `rows` numbers of the window that lie side by side, in tiles as even as can be.
template <typename Form, int Vectors>
void add_weight_rows(const WeightPixels& at, const typename Form::Item* x, const typename Form::Item* dy, float* kept,
                     int64_t rows) {
  static_assert(kTileRows == 6);
  for (int64_t tiles = divide_up(rows, kTileRows); tiles > 0; --tiles) {
    const int64_t count = divide_up(rows, tiles);
    switch (count) {
      case 6: add_weight_tile<Form, 6, Vectors>(at, x, dy, kept); break;
      case 5: add_weight_tile<Form, 5, Vectors>(at, x, dy, kept); break;
      case 4: add_weight_tile<Form, 4, Vectors>(at, x, dy, kept); break;
      case 3: add_weight_tile<Form, 3, Vectors>(at, x, dy, kept); break;
      case 2: add_weight_tile<Form, 2, Vectors>(at, x, dy, kept); break;
      default: add_weight_tile<Form, 1, Vectors>(at, x, dy, kept); break;
    }
    x += count, kept += count * kLinearPanel, rows -= count;
  }
}

template <typename Form>
void add_weight_columns(const WeightPixels& at, const typename Form::Item* x, const typename Form::Item* dy,
                        float* kept, int64_t rows, int64_t outputs) {
  constexpr int64_t kColumn = kTileVectors * Floats::kWidth;
  for (int64_t n = 0; n < outputs; n += kColumn) {
    const int64_t vectors = divide_up(outputs - n, Floats::kWidth);
    if (vectors == 1) {
      add_weight_rows<Form, 1>(at, x, dy + n, kept + n, rows);
    } else if (vectors == 2 && kTileVectors > 2) {
      add_weight_rows<Form, 2>(at, x, dy + n, kept + n, rows);
    } else {
      add_weight_rows<Form, kTileVectors>(at, x, dy + n, kept + n, rows);
    }
  }
}

// One unit; see conv_weight_pieces.h.
template <typename Form>
struct WeightUnit {
  using Number = typename Form::Number;
  using Item = typename Form::Item;

  const ConvWeightCallOf<Number>& call;
  const ConvWeightPieces& pieces;
  int64_t output, outputs;         // the first, of all groups; at most 64
  int64_t channel, input, inputs;  // the first of x; the first of the group, and how many
  int64_t split;
  Item *dy, *band;
  float* sums;

  // Lines [first, first + lines) of dy.
  Item* copy_dy(int64_t image, int64_t first, int64_t lines, Item* to) const {
    const Window& w = call.window;
    const Number* from = call.dy + (image * w.out_height + first) * w.out_width * call.out_channels + output;
    for (int64_t i = 0; i < lines; ++i, from += w.out_width * call.out_channels) {
      Form::copy_dy_line(from, call.out_channels, w.out_width, outputs, to);
      to += Form::count_dy_items(w.out_width);
    }
    return to;
  }

  // The lines of x that lines [first, first + lines) of dy see, with zeros around.
  void copy_band(int64_t image, int64_t first, int64_t lines, Item* to) const {
    const Window& w = call.window;
    const int64_t count = (lines - 1) * w.stride_height + (w.kernel_height - 1) * w.dilation_height + 1;
    const int64_t top = first * w.stride_height - w.pad_height, line_size = pieces.pitch * inputs;
    for (int64_t i = 0; i < count; ++i, to += line_size) {
      const int64_t h = top + i;
      if (h < 0 || h >= w.height) {
        __builtin_memset(to, 0, static_cast<size_t>(line_size) * sizeof(Item));
        continue;
      }
      const Number* from = call.x + (image * w.height + h) * w.width * call.in_channels + channel;
      Form::copy_x_line(WeightLine<Number>{from, call.in_channels, inputs, w.width, w.pad_width, pieces.pitch,
                                           w.stride_width, w.kernel_width},
                        to);
    }
  }

  void add_chunk(int64_t images, int64_t lines) const {
    const Window& w = call.window;
    const int64_t line = pieces.pitch * inputs;
    const WeightPixels at = {
        images, lines, w.out_width, pieces.band_lines * line, w.stride_height * line, w.stride_width * inputs};
    float* kept = sums;
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      const Item* x = band + kh * w.dilation_height * line;
      // Neighbours in the window are neighbours in x.
      const int64_t runs = w.dilation_width == 1 ? 1 : w.kernel_width, run = w.kernel_width / runs * inputs;
      for (int64_t i = 0; i < runs; ++i, kept += run * kLinearPanel)
        add_weight_columns<Form>(at, x + i * w.dilation_width * inputs, dy, kept, run, outputs);
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
      Item* to = dy;
      for (int64_t i = 0; i < images; ++i) {
        to = copy_dy(image + i, first, lines, to);
        copy_band(image + i, first, lines, band + i * pieces.band_lines * pieces.pitch * inputs);
      }
      add_chunk(images, lines);
    }
    store_sums_of_unit();
  }
};

template <typename Form>
LISSOME_INLINE void run_weight_units(const ConvWeightCallOf<typename Form::Number>& call, int part, int parts) {
  using Item = typename Form::Item;
  static_assert(sizeof(Item) == sizeof(float));
  const ConvWeightPieces pieces = find_weight_pieces(call);
  float* scratch = call.scratch + part * (pieces.dy_size + pieces.band_size + pieces.sums_size);
  auto* dy = reinterpret_cast<Item*>(scratch);
  const int64_t group_units = pieces.panels * pieces.blocks;
  const Range units = split_evenly(call.groups * group_units * call.splits, part, parts);
  for (int64_t unit = units.begin; unit < units.end; ++unit) {
    const int64_t split = unit % call.splits, rest = unit / call.splits, group = rest / group_units;
    const int64_t input = rest % pieces.blocks * pieces.block, panel = rest / pieces.blocks % pieces.panels;
    const int64_t outputs = pieces.outputs - panel * kLinearPanel, inputs = pieces.inputs - input;
    WeightUnit<Form>{call,
                     pieces,
                     group * pieces.outputs + panel * kLinearPanel,
                     outputs < kLinearPanel ? outputs : kLinearPanel,
                     group * pieces.inputs + input,
                     input,
                     inputs < pieces.block ? inputs : pieces.block,
                     split,
                     dy,
                     dy + pieces.dy_size,
                     scratch + pieces.dy_size + pieces.band_size}
        .run();
  }
}

}  // namespace
}  // namespace lissome

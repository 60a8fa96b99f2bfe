// The int8 depthwise convolution over Ints. Products come in fours, and a channel has no fours of inputs beside each
// other: so four rows of the window make them. They are laid beside each other once for a strip of pixels (see
// depthwise_strip.h) and read for each column of the window and each pixel.
#pragma once

#include "lissome/kernel/isa/tile_u8s8_body.h"

#include "lissome/kernel/depthwise/depthwise_strip.h"

namespace lissome {
namespace {

constexpr int kDepthwiseVectors = 2;
constexpr int kDepthwisePixels = Floats::kWidth == 16 ? 8 : 4;  // of a tile

struct Strip {
  const DepthwiseU8S8Call& call;
  const int8_t* weight;  // of the first channel
  int64_t row;           // the first pixel of y
  int64_t channel, channels;
  int64_t top, left, columns;  // of x
  uint8_t* bytes;              // kStripBytes of them
};

// A group of four rows of the window. Those beyond the window meet weights of zero.
template <int Vectors>
LISSOME_INLINE void lay_group(const Strip& strip, const uint8_t* image, const uint8_t* border, int64_t group) {
  const DepthwiseU8S8Call& call = strip.call;
  const Window& w = call.window;
  const uint8_t* from[4];
  int64_t step[4];
  for (int j = 0; j < 4; ++j) {
    const int64_t tap = 4 * group + j, h = strip.top + tap * w.dilation_height;
    const bool inside = tap < w.kernel_height && h >= 0 && h < w.height;
    from[j] = inside ? image + h * w.width * call.channels + strip.channel : border;
    step[j] = inside ? call.channels : 0;
  }
  uint8_t* to = strip.bytes + group * strip.columns * kStripColumn;
  for (int64_t i = 0; i < strip.columns; ++i, to += kStripColumn) {
    const int64_t at = strip.left + i;
    if (at < 0 || at >= w.width) {
      __builtin_memset(to, call.x_zero, kStripColumn);
      continue;
    }
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      const int64_t lane = v * Floats::kWidth;
      const uint8_t* const rows[4] = {from[0] + at * step[0] + lane, from[1] + at * step[1] + lane,
                                      from[2] + at * step[2] + lane, from[3] + at * step[3] + lane};
      interleave_fours(rows, strip.channels - lane, to + 4 * lane);
    }
  }
}

struct DepthwiseTile {
  template <int Rows, int Vectors>
  static void run(const Strip& strip, TilePlace place, Ahead&) {
    const Window& w = strip.call.window;
    const int64_t stride = w.stride_width * kStripColumn, tap = w.dilation_width * kStripColumn;
    Ints sums[1][Vectors], pixels[Rows][Vectors];
    start_sums(strip.call, place, sums);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) pixels[r][v] = sums[0][v];
    }
    const int8_t* weight = strip.weight;
    const uint8_t* group = strip.bytes + (place.row - strip.row) * stride;
    for (int64_t g = 0; g < strip_groups(w); ++g, group += strip.columns * kStripColumn) {
      const uint8_t* x = group;
      for (int64_t u = 0; u < w.kernel_width; ++u, x += tap, weight += kStripColumn) {
        Weights columns[Vectors];
#pragma GCC unroll 2
        for (int v = 0; v < Vectors; ++v) columns[v] = load_weights(weight + v * Floats::kWidth * 4);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
          for (int v = 0; v < Vectors; ++v) {
            const Inputs fours = load_inputs(x + r * stride + v * Floats::kWidth * 4);
            pixels[r][v] = add_products(pixels[r][v], fours, columns[v]);
          }
        }
      }
    }
    store_tile(strip.call, place, pixels);
  }
};

// `count` neighbouring pixels of a line of y.
template <int Vectors>
void run_strip(const Strip& strip, const uint8_t* image, int64_t count) {
  const Window& w = strip.call.window;
  uint8_t border[kDepthwiseVectors * Floats::kWidth];
  __builtin_memset(border, strip.call.x_zero, sizeof(border));
  for (int64_t g = 0; g < strip_groups(w); ++g) lay_group<Vectors>(strip, image, border, g);
  TilePlace place = {strip.row, strip.channel, strip.channels};
  Ahead ahead;
  for (int64_t tiles = (count + kDepthwisePixels - 1) / kDepthwisePixels; tiles > 0; --tiles) {
    const int64_t pixels = (count + tiles - 1) / tiles;
    choose_tiles<DepthwiseTile, Vectors, kDepthwisePixels>(strip, place, pixels, 1, ahead);
    place.row += pixels, count -= pixels;
  }
}

// One line of y, a panel of channels.
LISSOME_INLINE void run_depthwise_line(const DepthwiseU8S8Call& call, int64_t line, int64_t panel) {
  constexpr int64_t kChannels = kDepthwiseVectors * Floats::kWidth;
  const Window& w = call.window;
  const uint8_t* image = call.x + line / w.out_height * w.height * w.width * call.channels;
  const int8_t* weight = call.weight + panel * strip_groups(w) * w.kernel_width * kStripColumn;
  const int64_t top = line % w.out_height * w.stride_height - w.pad_height, most = most_strip_pixels(w);
  const int64_t first = panel * kU8S8Panel, more = call.channels - first, there = more < kU8S8Panel ? more : kU8S8Panel;
  alignas(64) uint8_t bytes[kStripBytes];
  for (int64_t c = 0; c < there; c += kChannels) {
    const int64_t channels = there - c < kChannels ? there - c : kChannels;
    for (int64_t pixel = 0; pixel < w.out_width; pixel += most) {
      const int64_t count = w.out_width - pixel < most ? w.out_width - pixel : most;
      const Strip strip = {call,
                           weight + 4 * c,
                           line * w.out_width + pixel,
                           first + c,
                           channels,
                           top,
                           pixel * w.stride_width - w.pad_width,
                           (count - 1) * w.stride_width + strip_span(w),
                           bytes};
      if (channels > Floats::kWidth) {
        run_strip<2>(strip, image, count);
      } else {
        run_strip<1>(strip, image, count);
      }
    }
  }
}

LISSOME_INLINE void run_depthwise_u8s8(const DepthwiseU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t panels = (call.channels + kU8S8Panel - 1) / kU8S8Panel;
  const Range share = split_evenly(w.batch * w.out_height * panels, part, parts);
  for (int64_t i = share.begin; i < share.end; ++i) run_depthwise_line(call, i / panels, i % panels);
}

}  // namespace
}  // namespace lissome

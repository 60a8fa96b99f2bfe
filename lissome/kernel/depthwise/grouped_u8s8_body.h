// The int8 convolution of small groups over Ints. A register of sums holds several groups, or a part of one; each lane
// multiplies a four of its own group. Tiles whose windows lie inside of a full panel of x read it where it is, others
// what is laid out for them.
#pragma once

#include "lissome/kernel/isa/tile_u8s8_body.h"

#include "lissome/kernel/depthwise/grouped_strip.h"

namespace lissome {
namespace {

constexpr int kGroupedVectors = 2;

// Several groups in a register.
struct SmallFours {
  FourLanes lanes;
  explicit SmallFours(int64_t group) : lanes(group < 4 ? 4 : group) {}
  LISSOME_INLINE Inputs read(const uint8_t* pixel, int64_t channel, int64_t i) const {
    return lanes.spread(pixel + channel, i);
  }
};

// One or more registers a group.
struct WideFours {
  int64_t group;
  LISSOME_INLINE Inputs read(const uint8_t* pixel, int64_t channel, int64_t i) const {
    return broadcast_inputs(load_four(pixel + (channel & -group) + 4 * i));
  }
};

// What a row of the window meets: the first pixel, of which the first channel of the panel, and how far the next one
// is.
struct GroupedLine {
  const uint8_t* at;
  int64_t pixel;
};

template <typename Groups>
struct GroupedStrip {
  const GroupedU8S8Call& call;
  const Groups& groups;
  const GroupedLine* lines;  // [kernel_height]
  const int8_t* weight;      // of the panel
  int64_t channel;           // of the panel
};

template <typename Groups>
struct GroupedTile {
  template <int Rows, int Vectors>
  static void run(const GroupedStrip<Groups>& strip, TilePlace place, Ahead&) {
    const Window& w = strip.call.window;
    const int64_t fours = count_fours(strip.call.group);
    Ints sums[1][Vectors], pixels[Rows][Vectors];
    start_sums(strip.call, place, sums);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) pixels[r][v] = sums[0][v];
    }
    const int8_t* weight = strip.weight + 4 * strip.channel;
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      const GroupedLine line = strip.lines[kh];
      const int64_t stride = w.stride_width * line.pixel, tap = w.dilation_width * line.pixel;
      const uint8_t* x = line.at;
      for (int64_t kw = 0; kw < w.kernel_width; ++kw, x += tap) {
        for (int64_t i = 0; i < fours; ++i, weight += kGroupedFour) {
          Weights columns[Vectors];
#pragma GCC unroll 2
          for (int v = 0; v < Vectors; ++v) columns[v] = load_weights(weight + v * Floats::kWidth * 4);
#pragma GCC unroll 8
          for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
            for (int v = 0; v < Vectors; ++v) {
              const Inputs x_fours = strip.groups.read(x + r * stride, strip.channel + v * Floats::kWidth, i);
              pixels[r][v] = add_products(pixels[r][v], x_fours, columns[v]);
            }
          }
        }
      }
    }
    store_tile(strip.call, place, pixels);
  }
};

// `columns` pixels of a line of x from `left` on, `there` channels of a panel from `first` on.
LISSOME_INLINE void lay_line(const GroupedU8S8Call& call, const uint8_t* line, int64_t left, int64_t columns,
                             int64_t there, uint8_t* to) {
  for (int64_t i = 0; i < columns; ++i, to += kU8S8Panel) {
    const int64_t at = left + i;
    if (line == nullptr || at < 0 || at >= call.window.width) {
      __builtin_memset(to, call.x_zero, kU8S8Panel);
    } else if (there == kU8S8Panel) {
      __builtin_memcpy(to, line + at * call.channels, kU8S8Panel);
    } else {
      __builtin_memset(to, call.x_zero, kU8S8Panel);
      __builtin_memcpy(to, line + at * call.channels, static_cast<size_t>(there));
    }
  }
}

// One line of y, a panel of channels.
template <typename Groups>
LISSOME_INLINE void run_grouped_line(const GroupedU8S8Call& call, const Groups& groups, int64_t line, int64_t panel) {
  constexpr int64_t kChannels = kGroupedVectors * Floats::kWidth;
  const Window& w = call.window;
  const int64_t first = panel * kU8S8Panel, more = call.channels - first, there = more < kU8S8Panel ? more : kU8S8Panel;
  const uint8_t* image = call.x + line / w.out_height * w.height * w.width * call.channels + first;
  const int64_t top = line % w.out_height * w.stride_height - w.pad_height;
  alignas(64) uint8_t bytes[kGroupedBytes];
  alignas(64) uint8_t border[kU8S8Panel];
  __builtin_memset(border, call.x_zero, sizeof(border));
  GroupedLine lines[kGroupedLines];
  Ahead ahead;
  int64_t pixel = 0;
  for (int64_t tiles = (w.out_width + kGroupedPixels - 1) / kGroupedPixels; tiles > 0; --tiles) {
    const int64_t count = (w.out_width - pixel + tiles - 1) / tiles;
    const int64_t left = pixel * w.stride_width - w.pad_width, columns = grouped_columns(w, count);
    const bool inside = there == kU8S8Panel && left >= 0 && left + columns <= w.width;
    for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
      const int64_t h = top + kh * w.dilation_height;
      const uint8_t* from = h >= 0 && h < w.height ? image + h * w.width * call.channels : nullptr;
      if (inside) {
        lines[kh] = from == nullptr ? GroupedLine{border, 0} : GroupedLine{from + left * call.channels, call.channels};
      } else {
        uint8_t* to = bytes + kh * columns * kU8S8Panel;
        lay_line(call, from, left, columns, there, to);
        lines[kh] = {to, kU8S8Panel};
      }
    }
    for (int64_t c = 0; c < there; c += kChannels) {
      const int64_t channels = there - c < kChannels ? there - c : kChannels;
      const GroupedStrip<Groups> strip = {call, groups, lines, call.weight + panel * grouped_panel_bytes(w, call.group),
                                          c};
      const TilePlace place = {line * w.out_width + pixel, first + c, channels};
      if (channels > Floats::kWidth) {
        choose_tiles<GroupedTile<Groups>, 2, kGroupedPixels>(strip, place, count, 1, ahead);
      } else {
        choose_tiles<GroupedTile<Groups>, 1, kGroupedPixels>(strip, place, count, 1, ahead);
      }
    }
    pixel += count;
  }
}

LISSOME_INLINE void run_grouped_u8s8(const GroupedU8S8Call& call, int part, int parts) {
  const Window& w = call.window;
  const int64_t panels = (call.channels + kU8S8Panel - 1) / kU8S8Panel;
  const Range share = split_evenly(w.batch * w.out_height * panels, part, parts);
  if (call.group < Floats::kWidth) {
    const SmallFours groups(call.group);
    for (int64_t i = share.begin; i < share.end; ++i) run_grouped_line(call, groups, i / panels, i % panels);
  } else {
    const WideFours groups = {call.group};
    for (int64_t i = share.begin; i < share.end; ++i) run_grouped_line(call, groups, i / panels, i % panels);
  }
}

}  // namespace
}  // namespace lissome

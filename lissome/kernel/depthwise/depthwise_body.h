// Depthwise convolution over Floats, of f32 or bf16 with sums in f32: channels across registers. Common windows take
// eight pixels of a row at once, or seven, so that each number of x and each weight is read once for all of them.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include <type_traits>

#include "lissome/kernel/depthwise/depthwise.h"
#include "lissome/kernel/depthwise/depthwise_finish_body.h"
#include "lissome/kernel/depthwise/depthwise_lines_body.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

constexpr int kChannelVectors = 4;
constexpr int kBlockPixels = 8;

// Taps whose pixel lies inside of x: [first, end) of the kernel window along one axis.
LISSOME_INLINE Range find_inside(int64_t corner, int64_t size, int64_t kernel, int64_t dilation) {
  Range range = {0, kernel};
  while (range.begin < kernel && corner + range.begin * dilation < 0) ++range.begin;
  while (range.end > range.begin && corner + (range.end - 1) * dilation >= size) --range.end;
  return range;
}

// Neighbouring pixels of y in one row of an image, from number `row` on, and what they read.
template <typename T>
struct PixelBlock {
  const T* image;
  int64_t row, count, top, left;
  Range rows;     // of the window, inside of x
  Range columns;  // of x from `left` on, inside of x and read
};

// Weights in f32, [taps][inputs][channels].
struct WideWeights {
  // Those of the channels of y from c on, for input number `input` of all taps' inputs.
  template <typename Call>
  static LISSOME_INLINE Floats weigh(const Call& call, int64_t input, int64_t c, int64_t lanes) {
    return load_lanes(call.weight + input * call.channels + c, lanes);
  }
  static LISSOME_INLINE Floats add(Floats value, Floats weight, Floats sum) { return multiply_add(value, weight, sum); }
};

// What a vector of channels of y reads of a pixel of x: its own channels.
struct OwnChannels : WideWeights {
  static constexpr int64_t inputs = 1;  // that each channel of y sums
  // Input `i` of the channels of y from c on; `pixel` is channel 0 of x.
  template <typename T>
  LISSOME_INLINE Floats read(const T* pixel, int64_t c, int64_t lanes, int64_t) const {
    return load_lanes(pixel + c, lanes);
  }
};

// The columns that a block reads, of those that its pixels' windows cover, where they are known when compiling.
template <int First, int End>
struct FixedColumns {
  LISSOME_INLINE bool holds(int i) const { return i >= First && i < End; }
};
struct SomeColumns {
  Range range;
  LISSOME_INLINE bool holds(int i) const { return i >= range.begin && i < range.end; }
};

// One vector of channels of a block of at most `Pixels`, of which `lanes` are there.
template <int Stride, int Width, int Pixels, typename Columns, typename Call, typename T, typename Inputs>
LISSOME_INLINE void run_block(const Call& call, const PixelBlock<T>& at, const Columns& columns, int64_t c,
                              int64_t lanes, const Inputs& from) {
  constexpr int kColumns = (Pixels - 1) * Stride + Width;
  const Window& w = call.window;
  const Floats first = call.bias ? load_lanes(call.bias + c, lanes) : zeros();
  Floats sums[Pixels];
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) sums[p] = first;
  for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
    const T* x = at.image + ((at.top + h * w.dilation_height) * w.width + at.left) * call.channels;
    for (int64_t input = 0; input < from.inputs; ++input) {
      Floats taps[Width];
#pragma GCC unroll 8
      for (int u = 0; u < Width; ++u) taps[u] = from.weigh(call, (h * Width + u) * from.inputs + input, c, lanes);
#pragma GCC unroll 24
      for (int i = 0; i < kColumns; ++i) {
        if (!columns.holds(i)) continue;
        const Floats value = from.read(x + i * call.channels, c, lanes, input);
#pragma GCC unroll 8
        for (int u = 0; u < Width; ++u) {
          const int p = (i - u) / Stride;
          if (i >= u && (i - u) % Stride == 0 && p < Pixels) sums[p] = from.add(value, taps[u], sums[p]);
        }
      }
    }
  }
  alignas(64) float results[Pixels * Floats::kWidth];
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) store(results + p * Floats::kWidth, sums[p]);
  finish_block(call, at.row, at.count, c, results);
}

// All channels of a block. Whole vectors of blocks within an image, and of those that one column of padding touches,
// have their columns compiled in.
template <int Stride, int Width, int Pixels, typename Call, typename T, typename Inputs>
LISSOME_INLINE void run_block_channels(const Call& call, const PixelBlock<T>& at, const Inputs& from) {
  constexpr int kColumns = (Pixels - 1) * Stride + Width;
  const SomeColumns some = {at.columns};
  int64_t c = 0;
  const auto run_whole = [&](const auto& columns) {
    for (; c + Floats::kWidth <= call.channels; c += Floats::kWidth)
      run_block<Stride, Width, Pixels>(call, at, columns, c, Floats::kWidth, from);
  };
  const bool first = at.columns.begin == 0, last = at.columns.end == kColumns;
  const bool second = at.columns.begin == 1, earlier = at.columns.end == kColumns - 1;
  if (first && last) {
    run_whole(FixedColumns<0, kColumns>());
  } else if constexpr (Width == 3) {
    if (first && earlier) {
      run_whole(FixedColumns<0, kColumns - 1>());
    } else if (second && last) {
      run_whole(FixedColumns<1, kColumns>());
    } else if (second && earlier) {
      run_whole(FixedColumns<1, kColumns - 1>());
    } else {
      run_whole(some);
    }
  } else {
    run_whole(some);
  }
  if (c < call.channels) run_block<Stride, Width, Pixels>(call, at, some, c, call.channels - c, from);
}

template <int Stride, int Width, int Pixels, typename Call, typename Inputs>
void run_blocks_of(const Call& call, Range rows, const Inputs& from) {
  const Window& w = call.window;
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
    int64_t count = w.out_width - ow < rows.end - row ? w.out_width - ow : rows.end - row;
    if (count > Pixels) count = Pixels;
    const int64_t top = oh * w.stride_height - w.pad_height, left = ow * Stride - w.pad_width;
    const int64_t read = (count - 1) * Stride + Width, there = w.width - left;
    const Range columns = {left < 0 ? -left : 0, read < there ? read : there};
    const PixelBlock block = {call.x + n * w.height * w.width * call.channels,
                              row,
                              count,
                              top,
                              left,
                              find_inside(top, w.height, w.kernel_height, w.dilation_height),
                              columns};
    run_block_channels<Stride, Width, Pixels>(call, block, from);
    row += count;
  }
}

// Rows of 7, 14 and 28 pixels, the last of most classifiers, make whole blocks of seven.
template <int Stride, int Width, typename Call, typename Inputs>
void run_blocks(const Call& call, Range rows, const Inputs& from) {
  const int64_t width = call.window.out_width;
  if constexpr (Width == 3) {
    if (width % 7 == 0 && width % kBlockPixels != 0) return run_blocks_of<Stride, Width, 7>(call, rows, from);
  }
  run_blocks_of<Stride, Width, kBlockPixels>(call, rows, from);
}

// Any window: a pixel at a time.
template <int Vectors, typename Call, typename T, typename Inputs>
LISSOME_INLINE void run_channels(const Call& call, const PixelBlock<T>& at, int64_t c, const Inputs& from) {
  const Window& w = call.window;
  Floats sums[Vectors];
  const auto lanes = [&](int v) { return call.channels - c - v * Floats::kWidth; };
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    sums[v] = call.bias ? load_lanes(call.bias + c + v * Floats::kWidth, lanes(v)) : zeros();
  }
  for (int64_t h = at.rows.begin; h < at.rows.end; ++h) {
    for (int64_t u = at.columns.begin; u < at.columns.end; ++u) {
      const int64_t pixel = (at.top + h * w.dilation_height) * w.width + at.left + u * w.dilation_width;
      const T* x = at.image + pixel * call.channels;
      for (int64_t input = 0; input < from.inputs; ++input) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
          const int64_t lane = v * Floats::kWidth;
          const Floats value = from.read(x, c + lane, lanes(v), input);
          const int64_t number = (h * w.kernel_width + u) * from.inputs + input;
          sums[v] = from.add(value, from.weigh(call, number, c + lane, lanes(v)), sums[v]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) finish_pixel(call, at.row, c + v * Floats::kWidth, lanes(v), sums[v]);
}

template <typename Call, typename Inputs>
void run_pixel(const Call& call, int64_t row, Range channels, const Inputs& from) {
  const Window& w = call.window;
  const int64_t ow = row % w.out_width, oh = row / w.out_width % w.out_height, n = row / w.out_width / w.out_height;
  const int64_t top = oh * w.stride_height - w.pad_height, left = ow * w.stride_width - w.pad_width;
  const PixelBlock pixel = {call.x + n * w.height * w.width * call.channels,
                            row,
                            1,
                            top,
                            left,
                            find_inside(top, w.height, w.kernel_height, w.dilation_height),
                            find_inside(left, w.width, w.kernel_width, w.dilation_width)};
  int64_t c = channels.begin;
  for (; c + kChannelVectors * Floats::kWidth <= channels.end; c += kChannelVectors * Floats::kWidth) {
    run_channels<kChannelVectors>(call, pixel, c, from);
  }
  for (; c < channels.end; c += Floats::kWidth) run_channels<1>(call, pixel, c, from);
}

template <typename Call, typename Inputs>
void run_pixels(const Call& call, Range rows, Range channels, const Inputs& from) {
  for (int64_t row = rows.begin; row < rows.end; ++row) run_pixel(call, row, channels, from);
}

template <typename Inputs = OwnChannels, typename Call>
LISSOME_INLINE void run_depthwise(const Call& call, int part, int parts, const Inputs& from = {}) {
  const Window& w = call.window;
  const Range rows = split_evenly(w.batch * w.out_height * w.out_width, part, parts);
  const bool dense = w.dilation_width == 1, single = dense && w.stride_width == 1, two = dense && w.stride_width == 2;
  if (single && w.kernel_width == 3) return run_blocks<1, 3>(call, rows, from);
  if (two && w.kernel_width == 3) return run_blocks<2, 3>(call, rows, from);
  if (single && w.kernel_width == 5) return run_blocks<1, 5>(call, rows, from);
  if (two && w.kernel_width == 5) return run_blocks<2, 5>(call, rows, from);
  if (single && w.kernel_width == 7) return run_blocks<1, 7>(call, rows, from);
  if constexpr (std::is_same_v<Inputs, OwnChannels>) {
    const auto run_exactly = [&](Range some, Range channels) { run_pixels(call, some, channels, from); };
    if (has_long_lines(w)) return run_lines(call, part, parts, run_exactly);
  }
  run_pixels(call, rows, {0, call.channels}, from);
}

}  // namespace
}  // namespace lissome

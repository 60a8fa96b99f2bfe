// Depthwise convolution with long windows: of a vector of channels, the line of x that a block of pixels reads is laid
// out once, with zeros outside of x, and multiplied by a line of each window. A weight and a pixel of x are read once
// for the pixels of two rows of y.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/depthwise/depthwise_finish_body.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

constexpr int64_t kLongestLine = 128;  // pixels of x: 8 KiB
constexpr int kLineSums = 14;          // of a block, in registers

LISSOME_INLINE bool has_long_lines(const Window& w) {
  return w.stride_height == 1 && w.stride_width == 1 && w.dilation_height == 1 && w.dilation_width == 1 &&
         w.kernel_width >= 4 && w.kernel_width + kLineSums <= kLongestLine;
}

// A vector of channels of `Rows` lines of y, `Pixels` of each.
template <int Rows, int Pixels, typename Call>
struct LineBlock {
  const Call& call;
  int64_t image, oh, ow, c;
  Floats sums[Rows][Pixels];

  LISSOME_INLINE int64_t lanes() const { return call.channels - c; }

  // Adds line `kh` of the window of one row of y, and of the row below it line kh - 1.
  template <int Some>
  LISSOME_INLINE void add_line(const float* line, int first_row, int64_t kh, Range taps) {
    const float* weight = call.weight + kh * call.window.kernel_width * call.channels + c;
    const int64_t above = call.window.kernel_width * call.channels;
    for (int64_t u = taps.begin; u < taps.end; ++u) {
      Floats tap[Some];
#pragma GCC unroll 2
      for (int r = 0; r < Some; ++r) tap[r] = load_lanes(weight + u * call.channels - r * above, lanes());
#pragma GCC unroll 14
      for (int p = 0; p < Pixels; ++p) {
        const Floats value = load(line + (u + p) * Floats::kWidth);
#pragma GCC unroll 2
        for (int r = 0; r < Some; ++r) {
          Floats& sum = Some == Rows ? sums[r][p] : sums[first_row][p];
          sum = multiply_add(value, tap[r], sum);
        }
      }
    }
  }

  LISSOME_INLINE void run() {
    const Window& w = call.window;
    const int64_t top = oh - w.pad_height, left = ow - w.pad_width, length = Pixels - 1 + w.kernel_width;
    const Range inside = {left < 0 ? -left : 0, length < w.width - left ? length : w.width - left};
    const int64_t first_tap = inside.begin - (Pixels - 1);
    const Range taps = {first_tap < 0 ? 0 : first_tap, inside.end < w.kernel_width ? inside.end : w.kernel_width};
    const int64_t below = top + w.kernel_height + Rows - 1, end = below < w.height ? below : w.height;
    const Floats start = call.bias ? load_lanes(call.bias + c, lanes()) : zeros();
    for (auto& row : sums) {
      for (Floats& sum : row) sum = start;
    }
    alignas(64) float line[kLongestLine * Floats::kWidth];
    for (int64_t i = 0; i < length; ++i) store(line + i * Floats::kWidth, zeros());
    for (int64_t h = top < 0 ? 0 : top; h < end; ++h) {
      const auto* x = call.x + ((image * w.height + h) * w.width + left) * call.channels + c;
      for (int64_t i = inside.begin; i < inside.end; ++i) {
        store(line + i * Floats::kWidth, load_lanes(x + i * call.channels, lanes()));
      }
      const int64_t kh = h - top;
      if constexpr (Rows == 1) {
        add_line<1>(line, 0, kh, taps);
      } else if (kh == 0) {
        add_line<1>(line, 0, kh, taps);
      } else if (kh == w.kernel_height) {
        add_line<1>(line, 1, kh - 1, taps);
      } else {
        add_line<2>(line, 0, kh, taps);
      }
    }
    finish();
  }

  LISSOME_INLINE void finish() const {
    const Window& w = call.window;
    const int64_t left = w.out_width - ow, count = left < Pixels ? left : Pixels;
    alignas(64) float results[Pixels * Floats::kWidth];
    for (int r = 0; r < Rows && oh + r < w.out_height; ++r) {
#pragma GCC unroll 14
      for (int p = 0; p < Pixels; ++p) store(results + p * Floats::kWidth, sums[r][p]);
      finish_block(call, (image * w.out_height + oh + r) * w.out_width + ow, count, c, results);
    }
  }
};

// Zeros outside of x times what is infinite or NaN would be NaN.
template <typename Call>
bool has_finite_weights(const Call& call, int64_t c) {
  const int64_t taps = call.window.kernel_height * call.window.kernel_width;
  Floats sum = zeros();
  for (int64_t t = 0; t < taps; ++t) {
    sum = multiply_add(load_lanes(call.weight + t * call.channels + c, call.channels - c), zeros(), sum);
  }
  return sum_lanes(are_equal(sum, zeros())) == Floats::kWidth;
}

// `run_exactly(pixels of y, channels)` reads no tap outside of x.
template <int Rows, typename Call, typename Exactly>
void run_line_blocks(const Call& call, int part, int parts, const Exactly& run_exactly) {
  constexpr int kPixels = kLineSums / Rows;
  const Window& w = call.window;
  const int64_t lines = (w.out_height + Rows - 1) / Rows;
  const int64_t vectors = (call.channels + Floats::kWidth - 1) / Floats::kWidth;
  // The weights of a vector of channels stay near while the lines of an image pass.
  const Range blocks = split_evenly(w.batch * vectors * lines, part, parts);
  bool finite = true;
  for (int64_t at = blocks.begin; at < blocks.end; ++at) {
    const int64_t oh = at % lines * Rows, c = at / lines % vectors * Floats::kWidth, image = at / lines / vectors;
    if (at == blocks.begin || oh == 0) finite = has_finite_weights(call, c);
    if (!finite) {
      const int64_t first = image * w.out_height + oh, below = w.out_height - oh < Rows ? w.out_height - oh : Rows;
      const int64_t end = c + Floats::kWidth < call.channels ? c + Floats::kWidth : call.channels;
      run_exactly({first * w.out_width, (first + below) * w.out_width}, {c, end});
      continue;
    }
    for (int64_t ow = 0; ow < w.out_width; ow += kPixels)
      LineBlock<Rows, kPixels, Call>{call, image, oh, ow, c, {}}.run();
  }
}

template <typename Call, typename Exactly>
void run_lines(const Call& call, int part, int parts, const Exactly& run_exactly) {
  if (call.window.out_height == 1) return run_line_blocks<1>(call, part, parts, run_exactly);
  run_line_blocks<2>(call, part, parts, run_exactly);
}

}  // namespace
}  // namespace lissome

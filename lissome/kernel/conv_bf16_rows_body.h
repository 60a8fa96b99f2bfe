// What the forms of the bf16 convolution share: columns, which hold for each pixel of the result all that its window
// sees, and how parts divide the work.
#pragma once

#include "lissome/kernel/conv_bf16_pieces.h"
#include "lissome/kernel/linear_bf16_rows_body.h"

namespace lissome {
namespace {

[[maybe_unused]] LISSOME_INLINE void copy_items(const uint16_t* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + Floats::kWidth <= count; i += Floats::kWidth) store(to + i, load(from + i));
  if (i < count) store_first(to + i, load_first(from + i, count - i), count - i);
}
[[maybe_unused]] LISSOME_INLINE void clear_items(float* to, int64_t count) {
  int64_t i = 0;
  for (; i + Floats::kWidth <= count; i += Floats::kWidth) store(to + i, zeros());
  if (i < count) store_first(to + i, zeros(), count - i);
}
#ifdef __AVX512BF16__
LISSOME_INLINE __mmask32 first_items(int64_t count) { return static_cast<__mmask32>((uint64_t{1} << count) - 1); }
LISSOME_INLINE void copy_items(const uint16_t* from, int64_t count, uint16_t* to) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
  if (i == count) return;
  const __mmask32 rest = first_items(count - i);
  _mm512_mask_storeu_epi16(to + i, rest, _mm512_maskz_loadu_epi16(rest, from + i));
}
LISSOME_INLINE void clear_items(uint16_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) _mm512_storeu_si512(to + i, _mm512_setzero_si512());
  if (i < count) _mm512_mask_storeu_epi16(to + i, first_items(count - i), _mm512_setzero_si512());
}
#endif

// Where columns are filled: runs of `items`, `stride` items apart.
template <typename Item>
struct ColumnRuns {
  Item* to;
  int64_t items, stride;
};

template <typename Item>
LISSOME_INLINE void clear_runs(ColumnRuns<Item> runs, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) clear_items(runs.to + i * runs.stride, runs.items);
}
// Run i from x + i * x_stride on.
template <typename Item>
LISSOME_INLINE void copy_runs(const uint16_t* x, int64_t x_stride, ColumnRuns<Item> runs, int64_t begin, int64_t end) {
#ifdef __AVX512BF16__
  if (runs.items <= 32) {
    const __mmask32 all = first_items(runs.items);
    for (int64_t i = begin; i < end; ++i) {
      _mm512_mask_storeu_epi16(runs.to + i * runs.stride, all, _mm512_maskz_loadu_epi16(all, x + i * x_stride));
    }
    return;
  }
#endif
  for (int64_t i = begin; i < end; ++i) copy_items(x + i * x_stride, runs.items, runs.to + i * runs.stride);
}

// Part of a line of the window for `count` neighbouring pixels of y: `wide` pixels of x each, `inputs` of their
// channels; the first from pixel `left` of the line on.
template <typename Item>
LISSOME_INLINE void gather_runs(const Window& w, const uint16_t* line, int64_t x_pixel, int64_t left, int64_t wide,
                                ColumnRuns<Item> runs, int64_t count) {
  const int64_t stride = w.stride_width, inputs = runs.items / wide;
  const int64_t room = w.width - wide - left;  // the last pixel that sees nothing behind the line begins so far right
  int64_t begin = left < 0 ? (-left + stride - 1) / stride : 0, end = room < 0 ? 0 : room / stride + 1;
  if (end > count) end = count;
  if (begin > end) begin = end;
  const auto gather_edge = [&](int64_t i) {
    for (int64_t k = 0; k < wide; ++k) {
      const int64_t at = left + i * stride + k;
      Item* to = runs.to + i * runs.stride + k * inputs;
      if (at >= 0 && at < w.width) {
        copy_items(line + at * x_pixel, inputs, to);
      } else {
        clear_items(to, inputs);
      }
    }
  };
  for (int64_t i = 0; i < begin; ++i) gather_edge(i);
  copy_runs(line + left * x_pixel, stride * x_pixel, runs, begin, end);
  for (int64_t i = end; i < count; ++i) gather_edge(i);
}

// `inputs` channels of the windows of `count` pixels of one line of y, from pixel `first` on.
template <typename Item>
LISSOME_INLINE void gather_windows(const Window& w, const uint16_t* x, int64_t x_pixel, int64_t inputs, int64_t first,
                                   int64_t count, int64_t stride, Item* to) {
  const int64_t ow = first % w.out_width, oh = first / w.out_width % w.out_height;
  const uint16_t* image = x + first / w.out_width / w.out_height * w.height * w.width * x_pixel;
  // Where all channels are taken, neighbouring taps are one run.
  const int64_t wide = w.dilation_width == 1 && inputs == x_pixel ? w.kernel_width : 1;
  for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
    const int64_t h = oh * w.stride_height - w.pad_height + kh * w.dilation_height;
    for (int64_t kw = 0; kw < w.kernel_width; kw += wide, to += wide * inputs) {
      const ColumnRuns<Item> runs = {to, wide * inputs, stride};
      if (h < 0 || h >= w.height) {
        clear_runs(runs, 0, count);
      } else {
        gather_runs(w, image + h * w.width * x_pixel, x_pixel,
                    ow * w.stride_width - w.pad_width + kw * w.dilation_width, wide, runs, count);
      }
    }
  }
}

// Rows of `stride` items, one for each of the pixels: inputs as packed weights have them, then zeros.
template <typename Item>
void gather_columns(const ConvPiece& piece, const uint16_t* x, int64_t x_pixel, Range pixels, int64_t stride,
                    Item* to) {
  const Window& w = piece.window;
  const int64_t all = piece.taps() * piece.inputs, run = piece.run();
  for (int64_t pixel = pixels.begin; pixel < pixels.end;) {
    const int64_t left = w.out_width - pixel % w.out_width;
    const int64_t count = left < pixels.end - pixel ? left : pixels.end - pixel;
    for (int64_t first = 0; first < piece.inputs; first += run) {
      gather_windows(w, x + first, x_pixel, run, pixel, count, stride, to + first * piece.taps());
    }
    if (all < stride) clear_runs(ColumnRuns<Item>{to + all, stride - all, stride}, 0, count);
    pixel += count, to += count * stride;
  }
}

// The outputs of a piece.
LISSOME_INLINE OutputBf16 output_of(const ConvBf16Call& call, const ConvPiece& piece) {
  OutputBf16 output = call;
  output.y += piece.y_offset;
  if (output.bias) output.bias += piece.y_offset;
  if (output.residual) output.residual += piece.y_offset;
  return output;
}

// Whether parts divide the panels, each staging all of x, or the rows, each reading all weights. Costs in cycles,
// roughly; `step` is that of one step of one block.
LISSOME_INLINE bool divides_panels(int64_t blocks, int64_t panels, int64_t steps, int64_t step, int64_t staged_bytes,
                                   int parts) {
  const int64_t weight_bytes = panels * steps * kBf16Panel * kBf16Step * 2;
  const int64_t by_panels =
      (panels + parts - 1) / parts * blocks * steps * step + staged_bytes / 16 + weight_bytes / parts / 8;
  const int64_t by_rows =
      (blocks + parts - 1) / parts * panels * steps * step + staged_bytes / parts / 16 + weight_bytes / 8;
  return by_panels <= by_rows;
}

// A piece through columns, `unit` rows of them a block; `multiply(x, map, rows, panels)` for each chunk.
template <typename Item, typename Function>
LISSOME_INLINE void run_columns(const ConvBf16Call& call, const ConvPiece& piece, int64_t unit, int64_t step, int part,
                                int parts, const Function& multiply) {
  const Window& w = piece.window;
  const int64_t steps = count_bf16_steps(piece.inputs * piece.taps()), stride = steps * kBf16Step;
  const int64_t rows = w.batch * w.out_height * w.out_width;
  const int64_t blocks = (rows + unit - 1) / unit, panels = (piece.outputs + kBf16Panel - 1) / kBf16Panel;
  Range my_panels = {0, panels}, my_rows = {0, rows};
  if (divides_panels(blocks, panels, steps, step, rows * stride * 2, parts)) {
    my_panels = split_evenly(panels, part, parts);
  } else {
    my_rows = split_by_unit(rows, unit, part, parts);
  }
  if (my_panels.begin == my_panels.end) return;
  PixelMap map = piece.map;
  if (call.transposed) map.pitch = w.out_width, map.lines = w.out_height;
  auto* scratch = reinterpret_cast<Item*>(call.scratch + part * call.scratch_part);
  const int64_t chunk = choose_column_chunk(stride * 2, unit);
  for (int64_t row = my_rows.begin; row < my_rows.end; row += chunk) {
    const Range taken = {row, row + chunk < my_rows.end ? row + chunk : my_rows.end};
    gather_columns(piece, call.x + piece.x_offset, call.in_channels, taken, stride, scratch);
    map.first = row;
    multiply(StagedRows<Item>{scratch, stride}, map, taken.end - taken.begin, my_panels);
  }
}

}  // namespace
}  // namespace lissome

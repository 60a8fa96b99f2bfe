// What the forms of the bf16 convolution share: columns, which hold for each pixel of the result all that its window
// sees, and how parts divide the work.
#pragma once

#include <type_traits>

#include "lissome/kernel/conv/conv_bf16_pieces.h"
#include "lissome/kernel/gemm/linear_bf16_rows_body.h"

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

// How a form multiplies columns.
struct ColumnForm {
  int64_t rows;         // of a block
  int64_t step_cycles;  // of a step of a block and a panel, roughly
  int64_t unit;         // pixels whose inputs are a multiple of this are read where they lie, unless columns are f32
};

// Columns of these pixels: pixels themselves where a window sees nothing else, or gathered.
template <typename Item>
LISSOME_INLINE StagedRows<Item> stage_columns(const ConvPiece& piece, const uint16_t* x, int64_t x_pixel, Range pixels,
                                              int64_t unit, int64_t stride, Item* scratch) {
  if constexpr (std::is_same_v<Item, uint16_t>) {
    if (piece.sees_pixels() && piece.inputs % unit == 0) return {x + pixels.begin * x_pixel, x_pixel};
  }
  gather_columns(piece, x, x_pixel, pixels, stride, scratch);
  return {scratch, stride};
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

// `rows` of the columns of a piece against the panels; row 0 is row `first` of the map.
template <typename Item, typename Function>
LISSOME_INLINE void multiply_columns(const ConvPiece& piece, const uint16_t* x, int64_t x_pixel, Range rows,
                                     PixelMap map, int64_t first, const ColumnForm& form, Item* scratch,
                                     const Function& multiply) {
  const int64_t stride = count_bf16_steps(piece.inputs * piece.taps()) * kBf16Step;
  const int64_t all = rows.end - rows.begin, most = choose_column_chunk(piece, form.rows);
  const int64_t chunks = (all + most - 1) / most;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const Range taken = {rows.begin + all * chunk / chunks, rows.begin + all * (chunk + 1) / chunks};
    map.first = first + taken.begin;
    multiply(stage_columns(piece, x, x_pixel, taken, form.unit, stride, scratch), map, taken.end - taken.begin);
  }
}

// A piece through columns; `multiply(x, map, rows, panels)` for each chunk of them.
template <typename Item, typename Function>
LISSOME_INLINE void run_columns(const ConvBf16Call& call, const ConvPiece& piece, const ColumnForm& form, int part,
                                int parts, const Function& multiply) {
  const Window& w = piece.window;
  const int64_t steps = count_bf16_steps(piece.inputs * piece.taps());
  const int64_t rows = w.batch * w.out_height * w.out_width;
  const int64_t blocks = (rows + form.rows - 1) / form.rows, panels = (piece.outputs + kBf16Panel - 1) / kBf16Panel;
  Range my_panels = {0, panels}, my_rows = {0, rows};
  if (divides_panels(blocks, panels, steps, form.step_cycles, rows * steps * kBf16Step * 2, parts)) {
    my_panels = split_evenly(panels, part, parts);
  } else {
    my_rows = split_by_unit(rows, form.rows, part, parts);
  }
  if (my_panels.begin == my_panels.end) return;
  PixelMap map = piece.map;
  if (call.transposed) map.pitch = w.out_width, map.lines = w.out_height;
  multiply_columns(piece, call.x + piece.x_offset, call.in_channels, my_rows, map, 0, form,
                   reinterpret_cast<Item*>(call.scratch + part * call.scratch_part),
                   [&](StagedRows<Item> x, const PixelMap& at, int64_t count) { multiply(x, at, count, my_panels); });
}

// Up to 32 pixels of all planes, `plane` apart, channels last.
template <typename Source>
LISSOME_INLINE void interleave_pixels(const Source* planes, int64_t plane, int64_t channels, int64_t count,
                                      uint16_t* to) {
  alignas(64) uint16_t pixels[kBf16Step][32];
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < count; i += Floats::kWidth) {
      const Source* from = planes + c * plane + i;
      store(pixels[c] + i, count - i >= Floats::kWidth ? load(from) : load_first(from, count - i));
    }
  }
#ifdef __AVX512BF16__
  if (channels == 3 && count == 32) {
    // Item i of the result is pixel i / 3 of channel i % 3: first the channels 0 and 1, then 2 among them.
    alignas(64) static constexpr auto kOrder = [] {
      struct {
        uint16_t pairs[3][32], third[3][32];
        uint32_t thirds[3];
      } order = {};
      for (int i = 0; i < 96; ++i) {
        order.pairs[i / 32][i % 32] = static_cast<uint16_t>(i / 3 + i % 3 * 32);
        order.third[i / 32][i % 32] = static_cast<uint16_t>(i / 3);
        if (i % 3 == 2) order.thirds[i / 32] |= uint32_t{1} << i % 32;
      }
      return order;
    }();
    const __m512i first = _mm512_load_si512(pixels[0]), second = _mm512_load_si512(pixels[1]);
    const __m512i third = _mm512_load_si512(pixels[2]);
    for (int i = 0; i < 3; ++i) {
      const __m512i both = _mm512_permutex2var_epi16(first, _mm512_load_si512(kOrder.pairs[i]), second);
      _mm512_storeu_si512(to + i * 32, _mm512_mask_permutexvar_epi16(both, kOrder.thirds[i],
                                                                     _mm512_load_si512(kOrder.third[i]), third));
    }
    return;
  }
#endif
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < channels; ++c) *to++ = pixels[c][i];
  }
}

// `pixels` of each line, from the first that a window sees on.
template <typename Source>
void interleave_lines(const ConvBf16Call& call, const Source* planes, int64_t n, Range lines, int64_t pixels,
                      uint16_t* to) {
  const Window& w = call.window;
  const int64_t plane = w.height * w.width, channels = call.in_channels;
  const int64_t end = w.pad_width + w.width < pixels ? w.pad_width + w.width : pixels;
  const int64_t begin = w.pad_width < end ? w.pad_width : end;
  for (int64_t line = lines.begin; line < lines.end; ++line, to += pixels * channels) {
    const Source* from = planes + n * channels * plane + line * w.width;
    for (int64_t i = 0; i < begin * channels; ++i) to[i] = 0;
    for (int64_t i = begin; i < end; i += 32) {
      interleave_pixels(from + i - begin, plane, channels, end - i < 32 ? end - i : 32, to + i * channels);
    }
    for (int64_t i = end * channels; i < pixels * channels; ++i) to[i] = 0;
  }
}

// A first layer, whose x comes in planes. Parts divide the lines of y.
template <typename Item, typename Function>
LISSOME_INLINE void run_planes(const ConvBf16Call& call, const ConvPiece& piece, const ColumnForm& form, int part,
                               int parts, const Function& multiply) {
  const Window& w = piece.window;
  const PlaneBand band = plan_band(call);
  const int64_t reach = (w.kernel_height - 1) * w.dilation_height + 1;
  const Range panels = {0, (piece.outputs + kBf16Panel - 1) / kBf16Panel};
  auto* staged = reinterpret_cast<uint16_t*>(call.scratch + part * call.scratch_part);
  auto* columns = reinterpret_cast<Item*>(staged + band.elements);
  const Range share = split_evenly(w.batch * w.out_height, part, parts);
  for (int64_t line = share.begin; line < share.end;) {
    const int64_t n = line / w.out_height, oh = line % w.out_height;
    int64_t count = w.out_height - oh < band.lines ? w.out_height - oh : band.lines;
    if (count > share.end - line) count = share.end - line;
    const int64_t top = oh * w.stride_height - w.pad_height;
    const int64_t bottom = top + (count - 1) * w.stride_height + reach;
    const int64_t end = bottom < 0 ? 0 : bottom < w.height ? bottom : w.height;
    const int64_t begin = top < 0 ? 0 : top < end ? top : end;
    if (call.wide_planes) {
      interleave_lines(call, call.wide_planes, n, {begin, end}, band.pixels, staged);
    } else {
      interleave_lines(call, call.x, n, {begin, end}, band.pixels, staged);
    }
    ConvPiece own = piece;
    own.window.batch = 1, own.window.height = end - begin, own.window.out_height = count;
    own.window.pad_height = begin - top, own.window.width = band.pixels, own.window.pad_width = 0;
    multiply_columns(own, staged, call.in_channels, {0, count * w.out_width}, PixelMap{}, line * w.out_width, form,
                     columns,
                     [&](StagedRows<Item> x, const PixelMap& at, int64_t rows) { multiply(x, at, rows, panels); });
    line += count;
  }
}

}  // namespace
}  // namespace lissome

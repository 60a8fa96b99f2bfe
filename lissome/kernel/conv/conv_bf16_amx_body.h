// The bf16 linear and convolution on tile registers. Where channels are whole steps, tiles of x are read from lines of
// pixels: as they lie, or staged with their padding and apart by phases of the stride, so that all taps of all
// positions are the same distance apart. Positions between lines are computed too, and left out on the way out. Else
// through columns.
#pragma once

#include "lissome/kernel/conv/conv_bf16_rows_body.h"
#include "lissome/kernel/gemm/linear_bf16_amx_body.h"

namespace lissome {
namespace {

constexpr int64_t kTileStep = 64;  // cycles of a step of a block

// Lines [lines.begin, lines.end + shift) of the images of one phase.
void stage_slot(const ConvPiece& piece, const StagedImage& image, const uint16_t* x, int64_t x_pixel, Range lines,
                int64_t phase_row, int64_t phase_column, uint16_t* to) {
  const Window& w = piece.window;
  const int64_t pitch = image.columns.pitch, offset = phase_column - w.pad_width, stride = w.stride_width;
  // Pixels [begin, end) of a line lie inside of x.
  int64_t begin = offset < 0 ? (-offset + stride - 1) / stride : 0;
  int64_t end = w.width > offset ? (w.width - offset + stride - 1) / stride : 0;
  if (end > pitch) end = pitch;
  if (begin > end) begin = end;
  for (int64_t line = lines.begin; line < lines.end + image.rows.shift; ++line, to += image.line_size()) {
    const int64_t n = line / image.rows.pitch;
    const int64_t h = line % image.rows.pitch * w.stride_height + phase_row - w.pad_height;
    if (n >= w.batch || h < 0 || h >= w.height) {
      clear_items(to, image.line_size());
      continue;
    }
    clear_items(to, begin * image.pixel);
    const uint16_t* from = x + ((n * w.height + h) * w.width + begin * stride + offset) * x_pixel;
    if (stride == 1 && image.pixel == x_pixel) {
      copy_items(from, (end - begin) * x_pixel, to + begin * image.pixel);
    } else {
      for (int64_t pixel = begin; pixel < end; ++pixel, from += stride * x_pixel) {
        copy_items(from, piece.inputs, to + pixel * image.pixel);
      }
    }
    clear_items(to + end * image.pixel, (pitch - end) * image.pixel);
  }
  clear_items(to, image.columns.tail * image.pixel);
}

void stage_image(const ConvPiece& piece, const StagedImage& image, const uint16_t* x, int64_t x_pixel, Range lines,
                 uint16_t* to) {
  for (int64_t row = 0; row < image.rows.slots; ++row) {
    for (int64_t column = 0; column < image.columns.slots; ++column, to += image.slot_size()) {
      stage_slot(piece, image, x, x_pixel, lines, image.rows.phase_of[row], image.columns.phase_of[column], to);
    }
  }
}

// How far each tap's inputs lie from those of its position.
void find_taps(const ConvPiece& piece, const StagedImage& image, int64_t* taps) {
  const Window& w = piece.window;
  for (int64_t kh = 0; kh < w.kernel_height; ++kh) {
    const int64_t down = kh * w.dilation_height;
    for (int64_t kw = 0; kw < w.kernel_width; ++kw) {
      const int64_t right = kw * w.dilation_width;
      const int64_t slot = image.rows.slot_of[down % w.stride_height] * image.columns.slots +
                           image.columns.slot_of[right % w.stride_width];
      *taps++ = (image.in_place ? 0 : slot * image.slot_size()) + down / w.stride_height * image.line_size() +
                right / w.stride_width * image.pixel;
    }
  }
}

template <typename Runner>
void run_image(const ConvBf16Call& call, const ConvPiece& piece, const StagedImage& image, Runner& runner, int part,
               int parts) {
  const Window& w = piece.window;
  const OutputBf16 output = output_of(call, piece);
  int64_t taps[kMostTaps];
  find_taps(piece, image, taps);
  PixelMap map = piece.map;
  map.pitch = image.columns.pitch, map.lines = image.rows.pitch;
  const int64_t panels = (piece.outputs + kBf16Panel - 1) / kBf16Panel, steps = piece.inputs / kBf16Step;
  const int64_t blocks = (image.lines * map.pitch + kBlockRows - 1) / kBlockRows;
  const int64_t staged_bytes =
      image.in_place ? 0 : image.rows.slots * image.columns.slots * image.lines * image.line_size() * 2;
  Range my_panels = {0, panels}, lines = {0, image.lines};
  if (divides_panels(blocks, panels, piece.taps() * steps, kTileStep, staged_bytes, parts)) {
    my_panels = split_evenly(panels, part, parts);
  } else {
    lines = split_evenly(lines.end, part, parts);
  }
  if (my_panels.begin == my_panels.end) return;
  auto* scratch = reinterpret_cast<uint16_t*>(call.scratch + part * call.scratch_part);
  const uint16_t* first = call.x + piece.x_offset;
  for (int64_t line = lines.begin; line < lines.end; line += image.chunk_lines) {
    const Range taken = {line, line + image.chunk_lines < lines.end ? line + image.chunk_lines : lines.end};
    const uint16_t* x = scratch;
    if (image.in_place) {
      x = first + (line - w.pad_height) * image.line_size() - w.pad_width * image.pixel;
    } else {
      stage_image(piece, image, first, call.in_channels, taken, scratch);
    }
    map.first = line * map.pitch;
    runner.run({output, map, x, image.pixel, taps, piece.taps(), steps, call.weight + piece.weight_offset,
                piece.outputs, (taken.end - taken.begin - 1) * map.pitch + w.out_width},
               my_panels);
  }
  runner.drain();
}

LISSOME_INLINE void run_conv_bf16(const ConvBf16Call& call, int part, int parts) {
  constexpr ColumnForm form = {kBlockRows, kTileStep, kBf16Step};
  choose_activation(call.epilogue, [&](const auto& activation) {
    TileRunner runner(activation);
    for_each_piece(call, [&](const ConvPiece& piece, const Phase&) {
      const StagedImage image = call.planes ? StagedImage{} : plan_image(piece, call.in_channels);
      if (image.usable) return run_image(call, piece, image, runner, part, parts);
      const OutputBf16 output = output_of(call, piece);
      const int64_t steps = count_bf16_steps(piece.inputs * piece.taps()), tap = 0;
      const auto multiply = [&](StagedRows<uint16_t> x, const PixelMap& map, int64_t rows, Range panels) {
        runner.run(
            {output, map, x.first, x.stride, &tap, 1, steps, call.weight + piece.weight_offset, piece.outputs, rows},
            panels);
      };
      if (call.planes) {
        run_planes<uint16_t>(call, piece, form, part, parts, multiply);
      } else {
        run_columns<uint16_t>(call, piece, form, part, parts, multiply);
      }
      runner.drain();
    });
  });
}

}  // namespace
}  // namespace lissome

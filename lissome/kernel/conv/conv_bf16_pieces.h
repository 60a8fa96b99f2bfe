// The pieces of a bf16 convolution, each a plain convolution with one group, and how x is staged for it. Static: see
// split.h.
#pragma once

#include "lissome/kernel/conv/conv_bf16.h"
#include "lissome/kernel/conv/conv_phases.h"
#include "lissome/kernel/conv/pixel_map.h"
#include "lissome/kernel/conv/pixel_window.h"
#include "lissome/kernel/gemm/linear_bf16_sizes.h"

namespace lissome {
namespace {

struct ConvPiece {
  Window window;  // pads may be negative
  int64_t inputs = 0, outputs = 0;
  int64_t x_offset = 0, weight_offset = 0, y_offset = 0;  // elements; y_offset is that of bias and residual too
  PixelMap map;                                           // from pixels of window.out_* to rows of y

  int64_t taps() const { return window.kernel_height * window.kernel_width; }
  // Inputs that lie beside each other among the packed weights of a tap, and where those of a tap begin.
  int64_t run() const { return inputs % kBf16Step == 0 ? kBf16Step : inputs; }
  int64_t find_input(int64_t tap, int64_t ic) const { return (ic / run() * taps() + tap) * run() + ic % run(); }
  // Whether each pixel of y sees one pixel of x: the one at the same place.
  bool sees_pixels() const { return keeps_pixels(window); }
  int64_t packed_size() const {
    return (outputs + kBf16Panel - 1) / kBf16Panel * kBf16Panel * count_bf16_steps(inputs * taps()) * kBf16Step;
  }
};

// visit(piece, phase); the phase is that of a transposed convolution.
template <typename Visit>
inline void for_each_piece(const ConvBf16Call& call, const Visit& visit) {
  const Window& w = call.window;
  ConvPiece piece;
  piece.window = w;
  piece.inputs = call.in_channels / call.groups, piece.outputs = call.out_channels / call.groups;
  piece.map.image = w.out_height * w.out_width;
  const auto visit_groups = [&](const Phase& phase) {
    for (int64_t g = 0; g < call.groups; ++g) {
      piece.x_offset = g * piece.inputs, piece.y_offset = g * piece.outputs;
      visit(piece, phase);
      piece.weight_offset += piece.packed_size();
    }
  };
  if (!call.transposed) {
    piece.map.height = w.out_height, piece.map.width = w.out_width;
    piece.map.line = w.out_width;
    return visit_groups(Phase{});
  }
  for_each_phase(w, w.out_height, w.out_width, [&](const Phase& phase, int64_t top, int64_t left, int64_t) {
    const PhaseAxis &rows = phase.rows, &columns = phase.columns;
    Window& own = piece.window;
    own.kernel_height = rows.taps, own.pad_height = rows.pad, own.out_height = rows.pixels;
    own.kernel_width = columns.taps, own.pad_width = columns.pad, own.out_width = columns.pixels;
    own.dilation_height = rows.dilation, own.dilation_width = columns.dilation;
    own.stride_height = own.stride_width = 1;
    piece.map.height = rows.pixels, piece.map.width = columns.pixels, piece.map.base = top * w.out_width + left;
    piece.map.line = w.stride_height * w.out_width, piece.map.column = w.stride_width;
    visit_groups(phase);
  });
}

// One axis of x as it is staged: a slot for each phase of the stride that taps fall on, the padding between lines
// shared by the line before and the line after where both end in zeros.
constexpr int64_t kMostStride = 8, kMostTaps = 64;
struct StagedAxis {
  int64_t slots = 0, slot_of[kMostStride] = {}, phase_of[kMostStride] = {};
  int64_t shift = 0;  // of the last tap
  int64_t pitch = 0;  // from line to line, or from image to image
  int64_t tail = 0;   // shared zeros, behind the last
};
inline StagedAxis stage_axis(int64_t kernel, int64_t stride, int64_t dilation, int64_t pad, int64_t size, int64_t out) {
  StagedAxis axis;
  axis.shift = (kernel - 1) * dilation / stride;
  const int64_t full = out + axis.shift;
  axis.tail = axis.shift;
  bool used[kMostStride] = {};
  for (int64_t k = 0; k < kernel; ++k) used[k * dilation % stride] = true;
  for (int64_t phase = 0; phase < stride; ++phase) {
    if (!used[phase]) continue;
    axis.phase_of[axis.slots] = phase;
    axis.slot_of[phase] = axis.slots++;
    const int64_t leading = pad > phase ? (pad - phase + stride - 1) / stride : 0;
    const int64_t behind = size + pad - phase;  // the first tap there reads behind x
    const int64_t trailing = behind > 0 ? full - (behind + stride - 1) / stride : full;
    const int64_t both = leading < trailing ? leading : trailing;
    if (both < axis.tail) axis.tail = both;
  }
  if (axis.tail < 0) axis.tail = 0;
  axis.pitch = full - axis.tail;
  return axis;
}

// How a piece is multiplied on tile registers: positions of staged lines, each tap a fixed distance from the position.
struct StagedImage {
  bool usable = false;    // else x is brought into columns
  bool in_place = false;  // x lies as it is wanted
  StagedAxis rows, columns;
  int64_t pixel = 0;        // elements from pixel to pixel
  int64_t lines = 0;        // of all images
  int64_t chunk_lines = 0;  // staged at once
  int64_t line_size() const { return columns.pitch * pixel; }
  int64_t slot_size() const { return (chunk_lines + rows.shift) * line_size() + columns.tail * pixel; }
  int64_t elements() const { return in_place ? 0 : rows.slots * columns.slots * slot_size(); }
};
inline StagedImage plan_image(const ConvPiece& piece, int64_t x_pixel) {
  constexpr int64_t kChunkElements = 192 * 1024;
  const Window& w = piece.window;
  StagedImage image;
  const int64_t pixels = w.batch * w.out_height * w.out_width;
  if (piece.inputs % kBf16Step != 0 || piece.taps() == 0 || piece.taps() > kMostTaps || pixels == 0) return image;
  if (w.stride_height > kMostStride || w.stride_width > kMostStride) return image;
  image.usable = true;
  const int64_t reach_down = w.out_height - 1 + (w.kernel_height - 1) * w.dilation_height - w.pad_height;
  const int64_t reach_right = w.out_width - 1 + (w.kernel_width - 1) * w.dilation_width - w.pad_width;
  image.in_place = w.stride_height == 1 && w.stride_width == 1 && w.pad_height <= 0 && w.pad_width <= 0 &&
                   reach_down < w.height && reach_right < w.width;
  image.rows = stage_axis(w.kernel_height, w.stride_height, w.dilation_height, w.pad_height, w.height, w.out_height);
  image.columns = stage_axis(w.kernel_width, w.stride_width, w.dilation_width, w.pad_width, w.width, w.out_width);
  if (image.in_place) {
    image.rows.pitch = w.height, image.columns.pitch = w.width;
    image.rows.tail = image.columns.tail = 0;
    image.pixel = x_pixel;
  } else {
    // An odd number of cache lines, so that pixels spread over all of the first cache.
    image.pixel = (piece.inputs / kBf16Step | 1) * kBf16Step;
  }
  image.lines = (w.batch - 1) * image.rows.pitch + w.out_height;
  image.chunk_lines = image.lines;
  if (!image.in_place) {
    const int64_t fitting = kChunkElements / (image.rows.slots * image.columns.slots * image.line_size());
    const int64_t least = image.rows.shift > 4 ? image.rows.shift : 4;
    image.chunk_lines = fitting > least + image.rows.shift ? fitting - image.rows.shift : least;
    if (image.chunk_lines > image.lines) image.chunk_lines = image.lines;
  }
  return image;
}

// Where x comes in planes: lines of y that are computed at once from lines of x that are brought to channels-last, with
// the zeros to their left and right.
struct PlaneBand {
  int64_t lines = 0;     // of y
  int64_t pixels = 0;    // of a line of x with its padding
  int64_t elements = 0;  // of all lines of x, whole cache lines
};
inline PlaneBand plan_band(const ConvBf16Call& call) {
  constexpr int64_t kBandElements = 64 * 1024;
  const Window& w = call.window;
  const int64_t reach = (w.kernel_height - 1) * w.dilation_height + 1;
  PlaneBand band;
  band.pixels = w.out_width > 0 ? (w.out_width - 1) * w.stride_width + (w.kernel_width - 1) * w.dilation_width + 1 : 0;
  const int64_t line = band.pixels * call.in_channels;
  band.lines = (kBandElements / (line + 1) - reach) / w.stride_height + 1;
  if (band.lines > w.out_height) band.lines = w.out_height;
  if (band.lines < 1) band.lines = 1;
  const int64_t x_lines = (band.lines - 1) * w.stride_height + reach;
  band.elements = ((x_lines < w.height ? x_lines : w.height) * line + 31) / 32 * 32;
  return band;
}

// Rows of columns that are staged at once: so few that they stay in the first cache while weights stream by from the
// second; where weights do not stay there, so many that they stream by seldom.
inline int64_t choose_column_chunk(const ConvPiece& piece, int64_t unit) {
  constexpr int64_t kNearBytes = 20 * 1024, kFarBytes = 256 * 1024, kNearWeightBytes = 768 * 1024;
  const int64_t row_bytes = count_bf16_steps(piece.inputs * piece.taps()) * kBf16Step * 2;
  const int64_t bytes = piece.packed_size() * 2 > kNearWeightBytes ? kFarBytes : kNearBytes;
  const int64_t rows = bytes / (row_bytes + 1) / unit * unit;
  return rows < unit ? unit : rows;
}

}  // namespace
}  // namespace lissome

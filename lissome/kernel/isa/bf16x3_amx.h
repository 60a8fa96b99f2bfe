// How f32 products run on tile registers, whose inputs are bf16: each number is cut into three pieces of 8 bits, which
// add up to it exactly, and six of the nine products of pieces are summed. The three that are left out lie below 2^-21
// of the product, so that the sums are as exact as those of f32. The sizes of the scratch that this takes.
// Static: see split.h.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"
#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/isa/tiles_bf16.h"

namespace lissome {
namespace {

constexpr int64_t kStepInputs = 32;                      // of a tile: pairs for each of its 16 columns of 4 bytes
constexpr int64_t kTileItems = kTileSide * kStepInputs;  // bf16 numbers of a tile
constexpr int64_t kJobSteps = 8;                         // steps whose weights are cut at once, for one panel
constexpr int64_t kBf16Pieces = 3;
constexpr int64_t kJobItems = kJobSteps * kBf16Pieces * kLinearPanel * kStepInputs;
constexpr int64_t kLeastBf16x3Rows = 32;       // below, cutting the weights costs more than the products save
constexpr int64_t kBf16x3Bytes = 1280 * 1024;  // of x at once
constexpr int64_t kMostBf16x3Rows = 1024, kMostBf16x3Taps = 64;

inline int64_t round_up_to(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// The pieces of x that a part holds at once: three planes of rows, an even stride apart.
struct Bf16x3Sizes {
  int64_t stride;  // from row to row of a plane, in bf16 numbers
  int64_t plane;   // from plane to plane
  int64_t sums;    // rows whose sums are kept
  inline int64_t floats() const { return (kBf16Pieces * plane + 2 * kJobItems) / 2 + sums * kLinearPanel; }
};

// A linear takes so many rows at once, at most.
inline int64_t count_linear_bf16x3_rows(const LinearF32Call& call) {
  const int64_t row = kBf16Pieces * 2 * round_up_to(call.inputs, kStepInputs);
  const int64_t fitting = kBf16x3Bytes / row / kBlockRows * kBlockRows;
  const int64_t most = fitting < kLeastBf16x3Rows  ? kLeastBf16x3Rows
                       : fitting > kMostBf16x3Rows ? kMostBf16x3Rows
                                                   : fitting;
  const int64_t all = round_up_to(call.rows, kBlockRows);
  return all < most ? all : most;
}
inline Bf16x3Sizes find_linear_bf16x3(const LinearF32Call& call) {
  const int64_t rows = count_linear_bf16x3_rows(call);
  const int64_t stride = round_up_to(call.inputs, kStepInputs) + kStepInputs;  // no power of two
  return {stride, rows * stride, rows};
}

// A convolution: the image, with its padding, is sorted by the phase of its strides, so that the pixels of a tap lie at
// an even distance. Each row of outputs is `pitch` pixels long, of which out_width are real. An image of few channels
// stays in order across: a tap is then a whole row of the window, and pixels overlap.
struct PhaseSizes {
  bool overlaps;
  int64_t taps, inputs;  // of the sums: taps times inputs
  int64_t phases_down, phases_across;
  int64_t more_down;  // rows of a phase beyond those of the outputs
  int64_t pitch;
  int64_t distance;  // from pixel to pixel, in numbers
  int64_t out_rows;  // at once, at most
};
inline PhaseSizes find_phases(const ConvF32Call& call) {
  const Window& w = call.window;
  const int64_t below = (w.kernel_height - 1) * w.dilation_height, right = (w.kernel_width - 1) * w.dilation_width;
  PhaseSizes p;
  p.overlaps = call.in_channels < kStepInputs;
  p.phases_down = w.stride_height < below + 1 ? w.stride_height : below + 1;
  p.more_down = below / w.stride_height;
  if (p.overlaps) {
    p.taps = w.kernel_height, p.inputs = w.kernel_width * call.in_channels;
    p.phases_across = 1;
    p.pitch = w.out_width + right / w.stride_width;
    p.distance = w.stride_width * call.in_channels;
  } else {
    p.taps = w.kernel_height * w.kernel_width, p.inputs = call.in_channels;
    p.phases_across = w.stride_width < right + 1 ? w.stride_width : right + 1;
    p.pitch = w.out_width + right / w.stride_width;
    p.distance = round_up_to(call.in_channels, kStepInputs);
  }
  const int64_t row = kBf16Pieces * 2 * p.phases_down * p.phases_across * p.pitch * p.distance;
  const int64_t fitting = kBf16x3Bytes / row - p.more_down, few = kMostBf16x3Rows / p.pitch;
  p.out_rows = fitting < few ? fitting : few;
  if (p.out_rows > w.out_height) p.out_rows = w.out_height;
  if (p.out_rows < 1) p.out_rows = 1;
  return p;
}
inline Bf16x3Sizes find_conv_bf16x3(const PhaseSizes& p) {
  const int64_t phase = (p.out_rows + p.more_down) * p.pitch * p.distance;
  // The last tile of rows, and the last step of an overlapping pixel, read beyond the last pixel.
  return {p.distance,
          round_up_to(p.phases_down * p.phases_across * phase + kBlockRows * p.distance, kStepInputs) + 2 * kStepInputs,
          round_up_to(p.out_rows * p.pitch, kBlockRows)};
}

inline bool pays_on_tiles(const LinearF32Call& call) {
  return call.rows >= kLeastBf16x3Rows && call.inputs >= kStepInputs && call.outputs > kTileSide;
}
inline bool pays_on_tiles(const ConvF32Call& call) {
  const Window& w = call.window;
  constexpr int64_t kMostStride = 4, kMostDilation = 32;  // beyond, images would hardly fit
  const bool whole = call.in_channels >= kStepInputs ||
                     (w.dilation_width == 1 && w.kernel_width * call.in_channels * 8 >= kStepInputs * 5);
  return call.groups == 1 && whole && call.out_channels > kTileSide &&
         w.kernel_height * w.kernel_width <= kMostBf16x3Taps && w.out_height * w.out_width >= kLeastBf16x3Rows &&
         w.stride_height <= kMostStride && w.stride_width <= kMostStride && w.dilation_height <= kMostDilation &&
         w.dilation_width <= kMostDilation &&
         find_conv_bf16x3(find_phases(call)).plane * 2 * kBf16Pieces <= 4 * kBf16x3Bytes;
}

}  // namespace
}  // namespace lissome

// The phases of a transposed convolution, which are those of a data gradient, one dimension at a time: pixels of its
// result that lie a stride apart meet the same taps, so each phase is a plain convolution of stride 1. Static: see
// split.h.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {
namespace {

// Pixels phase, phase + stride, ... of the result: a convolution with `taps` taps, `dilation` apart, that reads from
// -pad on. A tap of the window falls on them where (phase + pad of the window - tap * its dilation) is a multiple of
// the stride: every `step`-th from `first` on.
struct PhaseAxis {
  int64_t pixels = 0, taps = 0, first = 0, step = 1, dilation = 1, pad = 0;
  int64_t find_tap(int64_t j) const { return first + step * (taps - 1 - j); }  // of the window
};

// `size` is that of the result.
inline PhaseAxis find_phase_axis(int64_t phase, int64_t size, int64_t kernel, int64_t stride, int64_t pad,
                                 int64_t dilation) {
  PhaseAxis axis;
  axis.pixels = size > phase ? (size - phase + stride - 1) / stride : 0;
  while (axis.step * dilation % stride != 0) ++axis.step;
  axis.dilation = axis.step * dilation / stride;
  while (axis.first < axis.step && (phase + pad - axis.first * dilation) % stride != 0) ++axis.first;
  const bool meets = axis.first < axis.step && axis.first < kernel;
  if (!meets) return axis;
  axis.taps = (kernel - axis.first + axis.step - 1) / axis.step;
  axis.pad = (axis.taps - 1) * axis.dilation - (phase + pad - axis.first * dilation) / stride;
  return axis;
}

struct Phase {
  PhaseAxis rows, columns;
  int64_t taps() const { return rows.taps * columns.taps; }
};

// run(phase, row, column, first_tap): each phase, and how many taps those before it have. The result is height x width.
template <typename Run>
inline __attribute__((always_inline)) void for_each_phase(const Window& w, int64_t height, int64_t width,
                                                          const Run& run) {
  int64_t first_tap = 0;
  for (int64_t row = 0; row < w.stride_height; ++row) {
    const PhaseAxis rows =
        find_phase_axis(row, height, w.kernel_height, w.stride_height, w.pad_height, w.dilation_height);
    for (int64_t column = 0; column < w.stride_width; ++column) {
      const PhaseAxis columns =
          find_phase_axis(column, width, w.kernel_width, w.stride_width, w.pad_width, w.dilation_width);
      const Phase phase = {rows, columns};
      run(phase, row, column, first_tap);
      first_tap += phase.taps();
    }
  }
}

}  // namespace
}  // namespace lissome

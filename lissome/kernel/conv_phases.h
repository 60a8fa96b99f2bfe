// The phases of a strided data gradient, one dimension at a time; see conv_gradient.h. Static: see split.h.
#pragma once

#include "lissome/kernel/conv_gradient.h"

namespace lissome {
namespace {

// Pixels phase, phase + stride, ... of dx: a convolution of dy with `taps` taps, which reads from -pad on. Its tap j is
// tap first + stride * (taps - 1 - j) of the weight.
struct PhaseAxis {
  int64_t pixels, taps, first, pad;
};

inline PhaseAxis find_phase_axis(int64_t phase, int64_t size, int64_t kernel, int64_t stride, int64_t pad,
                                 int64_t dilation) {
  const int64_t first = (phase + pad) % stride;
  const int64_t taps = first < kernel ? (kernel - first + stride - 1) / stride : 0;
  const int64_t pixels = size > phase ? (size - phase + stride - 1) / stride : 0;
  return {pixels, taps, first, (taps - 1) * dilation - (phase + pad - first) / stride};
}

struct Phase {
  PhaseAxis rows, columns;
  int64_t taps() const { return rows.taps * columns.taps; }
};

inline Phase find_phase(const Window& w, int64_t row, int64_t column) {
  return {find_phase_axis(row, w.height, w.kernel_height, w.stride_height, w.pad_height, w.dilation_height),
          find_phase_axis(column, w.width, w.kernel_width, w.stride_width, w.pad_width, w.dilation_width)};
}

// run(phase, row, column, first_tap): each phase, and how many taps those before it have.
template <typename Run>
inline __attribute__((always_inline)) void for_each_phase(const Window& w, const Run& run) {
  int64_t first_tap = 0;
  for (int64_t row = 0; row < w.stride_height; ++row) {
    for (int64_t column = 0; column < w.stride_width; ++column) {
      const Phase phase = find_phase(w, row, column);
      run(phase, row, column, first_tap);
      first_tap += phase.taps();
    }
  }
}

}  // namespace
}  // namespace lissome

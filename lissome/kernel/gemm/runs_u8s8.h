// Where a packed weight of the int8 products lies (see linear_u8s8.h). Static: see split.h.
#pragma once

#include <cstdint>

#include "lissome/kernel/conv/pixel_window.h"
#include "lissome/kernel/gemm/linear_u8s8.h"

namespace lissome {
namespace {

constexpr int64_t kStepFours = 16;  // of a whole step

// Sizes of a panel, in fours of inputs and in bytes.
struct PanelU8S8 {
  int64_t tap_fours, runs;
  int64_t step_fours, steps;    // of a run
  int64_t square, step, panel;  // bytes
};

inline PanelU8S8 measure_panel(int64_t inputs, RunsU8S8 runs) {
  PanelU8S8 p;
  p.tap_fours = (inputs + 3) / 4;
  p.runs = runs.taps / runs.taps_per_run;
  const int64_t fours = p.tap_fours * runs.taps_per_run;
  p.step_fours = fours < kStepFours ? fours : kStepFours;
  p.steps = p.step_fours == 0 ? 0 : (fours + p.step_fours - 1) / p.step_fours;
  p.square = p.step_fours * 64;
  p.step = 2 * p.square;
  p.panel = p.runs * p.steps * p.step;
  return p;
}

// Of output n within its panels.
inline int64_t output_offset(const PanelU8S8& p, int64_t n) {
  return n / kU8S8Panel * p.panel + n / 16 % 2 * p.square + n % 16 * 4;
}

// Whether a convolution is a linear whose rows are the pixels, and that linear.
[[maybe_unused]] inline bool is_linear(const ConvU8S8Call& call) {
  return call.groups == 1 && keeps_pixels(call.window);
}
[[maybe_unused]] inline LinearU8S8Call describe_linear(const ConvU8S8Call& call) {
  const Window& w = call.window;
  LinearU8S8Call linear;
  static_cast<OutputU8S8&>(linear) = call;
  linear.x = call.x, linear.weight = call.weight;
  linear.rows = w.batch * w.out_height * w.out_width;
  linear.inputs = linear.x_stride = call.in_channels, linear.outputs = call.out_channels;
  return linear;
}

// Where result (row, n) lies, as a row of y_stride elements and a number in it or beyond.
[[maybe_unused]] inline int64_t spread_row(const SpreadU8S8& s, int64_t row) {
  return s.width == 0 ? row : row + row / s.width * s.width * (s.rows - 1);
}
[[maybe_unused]] inline int64_t spread_output(const OutputU8S8& output, int64_t n) {
  const SpreadU8S8& s = output.spread;
  if (s.width == 0) return n;
  const int64_t block = n / s.outputs;
  return block / s.columns * s.width * output.y_stride + block % s.columns * s.outputs + n % s.outputs;
}

}  // namespace
}  // namespace lissome

// The pixels of a transposed convolution's result one after the other, each with the taps that meet it inside of x.
// Static: see split.h.
#pragma once

#include "lissome/kernel/conv/conv_phases.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

// Along one axis: `count` taps, from `tap` on every `tap_step`-th, backwards, meet a pixel of x each, from `at` on
// every `at_step`-th.
struct Meeting {
  int64_t count, tap, tap_step, at, at_step;
};

// For pixel `t` of the phase; x has `size` pixels.
inline __attribute__((always_inline)) Meeting find_meeting(const PhaseAxis& axis, int64_t t, int64_t size) {
  int64_t first = 0, last = axis.taps;
  while (first < last && t - axis.pad + first * axis.dilation < 0) ++first;
  while (first < last && t - axis.pad + (last - 1) * axis.dilation >= size) --last;
  return {last - first, axis.find_tap(first), axis.step, t - axis.pad + first * axis.dilation, axis.dilation};
}

// visit(row, image, meeting of lines, meeting of columns) for each row in `rows`, a pixel of the result: in no order
// within a line.
template <typename Visit>
inline __attribute__((always_inline)) void walk_phases(const Window& w, Range rows, const Visit& visit) {
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t line = row / w.out_width, oh = line % w.out_height, begin = row - line * w.out_width;
    const int64_t left = begin + rows.end - row, end = left < w.out_width ? left : w.out_width;
    const PhaseAxis lines = find_phase_axis(oh % w.stride_height, w.out_height, w.kernel_height, w.stride_height,
                                            w.pad_height, w.dilation_height);
    const Meeting above = find_meeting(lines, oh / w.stride_height, w.height);
    for (int64_t phase = 0; phase < w.stride_width; ++phase) {
      const PhaseAxis columns =
          find_phase_axis(phase, w.out_width, w.kernel_width, w.stride_width, w.pad_width, w.dilation_width);
      int64_t t = begin > phase ? (begin - phase + w.stride_width - 1) / w.stride_width : 0;
      for (int64_t ow = phase + t * w.stride_width; ow < end; ow += w.stride_width, ++t)
        visit(line * w.out_width + ow, line / w.out_height, above, find_meeting(columns, t, w.width));
    }
    row += end - begin;
  }
}

}  // namespace
}  // namespace lissome

// An image whose channels lie in planes, as data do, under a convolution of channels-last values: each part lays the
// lines that some lines of y see side by side, pixel by pixel, in a band of its own, so that no copy of the whole image
// is ever made. Static: see split.h.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"
#include "lissome/kernel/gemm/split.h"

namespace lissome {
namespace {

constexpr int64_t kBandLines = 8;  // of y, that one band is for

// Lines of x that `lines` lines of y see.
inline int64_t count_seen_lines(const Window& w, int64_t lines) {
  return (lines - 1) * w.stride_height + (w.kernel_height - 1) * w.dilation_height + 1;
}

// Lines [lines.begin, lines.end) of image n.
inline void lay_band(const ConvF32Call& call, int64_t n, Range lines, float* band) {
  const Window& w = call.window;
  const int64_t plane = w.height * w.width;
  for (int64_t h = lines.begin; h < lines.end; ++h, band += w.width * call.in_channels) {
    for (int64_t c = 0; c < call.in_channels; ++c) {
      const float* from = call.x + (n * call.in_channels + c) * plane + h * w.width;
      for (int64_t v = 0; v < w.width; ++v) band[v * call.in_channels + c] = from[v];
    }
  }
}

// run(call over the band) for bands of the part's lines of y, whatever images they lie in.
template <typename Run>
void run_bands(const ConvF32Call& call, int part, int parts, const Run& run) {
  const Window& w = call.window;
  float* band = call.band + part * conv_f32_band(call);
  const Range mine = split_evenly(w.batch * w.out_height, part, parts);
  for (int64_t line = mine.begin; line < mine.end;) {
    const int64_t n = line / w.out_height, oh = line % w.out_height;
    int64_t count = w.out_height - oh < mine.end - line ? w.out_height - oh : mine.end - line;
    if (count > kBandLines) count = kBandLines;
    const int64_t top = oh * w.stride_height - w.pad_height, bottom = top + count_seen_lines(w, count);
    const int64_t begin = top < 0 ? 0 : top < w.height ? top : w.height;
    const int64_t end = bottom < begin ? begin : bottom < w.height ? bottom : w.height;
    lay_band(call, n, {begin, end}, band);
    ConvF32Call some = call;
    some.band = nullptr, some.x = band;
    some.window.batch = 1, some.window.out_height = count;
    some.window.height = end - begin, some.window.pad_height = begin - top;
    some.y += line * w.out_width * call.y_stride;
    if (some.residual) some.residual += line * w.out_width * call.residual_stride;
    run(some);
    line += count;
  }
}

}  // namespace
}  // namespace lissome

// A band of a channels-last image of bytes, laid out so that the rows of a convolution's product lie at one distance
// from each other: copied with its border, rows of one phase of the vertical stride beside each other (a plane), each
// row as long as a whole number of horizontal strides. Then output pixel (oh, ow) of the band is number
// oh * row_outputs + ow, and what a tap reads for it lies number * stride_width pixels behind what it reads for the
// first. The numbers beyond out_width of each row are no pixels: computed and thrown away.
// Static: see split.h.
#pragma once

#include <cstdint>

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {
namespace {

constexpr int64_t kBandBytes = 256 * 1024;  // leaves room for weights in the second level of cache
constexpr int64_t kBandSlack = 128;         // tiles are loaded in whole lines

struct ImageBand {
  int64_t pixel;        // bytes: channels, rounded up to four
  int64_t row_outputs;  // out_width and what is thrown away
  int64_t pitch;        // bytes from row to row of a plane
  int64_t more_rows;    // of a plane, beyond one for each row of output
  int64_t out_rows;     // of a band
};

inline int64_t band_bytes(const Window& w, const ImageBand& band, int64_t out_rows) {
  return w.stride_height * (out_rows + band.more_rows) * band.pitch;
}

inline ImageBand measure_band(const Window& w, int64_t channels) {
  ImageBand band;
  band.pixel = (channels + 3) / 4 * 4;
  band.row_outputs = w.out_width + (w.kernel_width - 1) * w.dilation_width / w.stride_width;
  band.pitch = band.row_outputs * w.stride_width * band.pixel;
  band.more_rows = (w.kernel_height - 1) * w.dilation_height / w.stride_height;
  band.out_rows = w.out_height;
  if (band_bytes(w, band, w.out_height) > kBandBytes) {
    const int64_t one = band_bytes(w, band, 1), next = w.stride_height * band.pitch;
    band.out_rows = one > kBandBytes ? 1 : 1 + (kBandBytes - one) / next;
  }
  return band;
}

// Of row kh and column kw of the window, in a band of `out_rows`.
inline int64_t tap_offset(const Window& w, const ImageBand& band, int64_t out_rows, int64_t kh, int64_t kw) {
  const int64_t row = kh * w.dilation_height;
  const int64_t plane = row % w.stride_height * (out_rows + band.more_rows);
  return (plane + row / w.stride_height) * band.pitch + kw * w.dilation_width * band.pixel;
}

[[maybe_unused]] inline int64_t band_scratch(const Window& w, int64_t channels) {
  const ImageBand band = measure_band(w, channels);
  return (band_bytes(w, band, band.out_rows) + kBandSlack + 63) / 64 * 64;
}

}  // namespace
}  // namespace lissome

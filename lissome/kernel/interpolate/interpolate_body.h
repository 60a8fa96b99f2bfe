// Interpolation over Floats, channels across registers.
#pragma once

#include "lissome/kernel/isa/vector_bf16.h"

#include "lissome/kernel/gemm/split.h"
#include "lissome/kernel/interpolate/interpolate_place.h"

namespace lissome {
namespace {

template <typename T>
LISSOME_INLINE void interpolate_pixel(const InterpolateCallOf<T>& call, const T* image, const InterpolatePlace& row,
                                      const InterpolatePlace& column, T* y) {
  const T* upper = image + row.first * call.width * call.channels;
  const T* lower = image + row.second * call.width * call.channels;
  const int64_t left_at = column.first * call.channels, right_at = column.second * call.channels;
  const Floats down = fill(row.share), right = fill(column.share);
  const Floats up = fill(1 - row.share), left = fill(1 - column.share);
  for (int64_t c = 0; c < call.channels; c += Floats::kWidth) {
    const int64_t count = call.channels - c < Floats::kWidth ? call.channels - c : Floats::kWidth;
    Floats value = load_first(upper + left_at + c, count);
    if (call.bilinear) {
      const Floats above = left * value + right * load_first(upper + right_at + c, count);
      const Floats below =
          left * load_first(lower + left_at + c, count) + right * load_first(lower + right_at + c, count);
      value = up * above + down * below;
    }
    store_first(y + c, value, count);
  }
}

template <typename T>
LISSOME_INLINE void interpolate_rows(const InterpolateCallOf<T>& call, int part, int parts) {
  const Range rows = split_evenly(call.batch * call.out_height, part, parts);
  for (int64_t at = rows.begin; at < rows.end; ++at) {
    const T* image = call.x + at / call.out_height * call.height * call.width * call.channels;
    const InterpolatePlace row = find_place(call, at % call.out_height, call.height, call.scale_height);
    T* y = call.y + at * call.out_width * call.channels;
    for (int64_t ow = 0; ow < call.out_width; ++ow, y += call.channels) {
      interpolate_pixel(call, image, row, find_place(call, ow, call.width, call.scale_width), y);
    }
  }
}

LISSOME_INLINE void run_interpolate(const InterpolateCall& call, int part, int parts) {
  interpolate_rows(call, part, parts);
}
LISSOME_INLINE void run_interpolate_bf16(const InterpolateBf16Call& call, int part, int parts) {
  interpolate_rows(call, part, parts);
}

}  // namespace
}  // namespace lissome

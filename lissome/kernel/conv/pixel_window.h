// Windows of one pixel. Static: see split.h.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {
namespace {

// Whether each pixel of y sees one pixel of x, that at the same place.
[[maybe_unused]] inline bool keeps_pixels(const Window& w) {
  return w.kernel_height * w.kernel_width == 1 && w.stride_height == 1 && w.stride_width == 1 && w.pad_height == 0 &&
         w.pad_width == 0 && w.out_height == w.height && w.out_width == w.width;
}

}  // namespace
}  // namespace lissome

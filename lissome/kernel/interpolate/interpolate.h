// Images of channels-last values, f32 or bf16, at another size, as torch.nn.functional.interpolate makes them.
#pragma once

#include <cstdint>

namespace lissome {

// Where the pixel `out` of the result lies in x: nearest takes floor(out * scale); bilinear (out + 0.5) * scale - 0.5,
// or out * scale where corners are aligned. `scale` is inputs per output.
struct InterpolateShape {
  int64_t batch = 0, height = 0, width = 0, out_height = 0, out_width = 0, channels = 0;
  float scale_height = 1, scale_width = 1;
  bool bilinear = false, aligned_corners = false;
};

template <typename T>
struct InterpolateCallOf : InterpolateShape {
  const T* x = nullptr;  // [batch, height, width, channels]
  T* y = nullptr;        // [batch, out_height, out_width, channels]
};
using InterpolateCall = InterpolateCallOf<float>;
using InterpolateBf16Call = InterpolateCallOf<uint16_t>;  // between pixels in f32

}  // namespace lissome

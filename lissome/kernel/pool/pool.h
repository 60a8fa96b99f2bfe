// Max and average pooling of channels-last values. NaN wins a maximum.
#pragma once

#include "lissome/kernel/conv/conv_f32.h"

namespace lissome {

struct PoolCall {
  const void* x = nullptr;  // [batch, height, width, channels]: f32, bf16, or u8 (max only)
  void* y = nullptr;
  int64_t channels = 0;
  Window window;
  bool average = false;
  // Window i of n goes from floor(i size / n) to ceil((i + 1) size / n); only the sizes of `window` count then.
  bool adaptive = false;
  bool counts_padding = true;             // averages divide by the window with its padding
  int64_t divisor = 0;                    // 0: by what was counted
  int64_t pad_bottom = 0, pad_right = 0;  // what counts as padding below and right
};

}  // namespace lissome

// Depthwise transposed convolution of channels-last values (1-D with height 1), in f32, or in bf16 with sums and
// weights in f32:
//   y[n, oh, ow, c] = act(bias[c] + sum of x[n, ih, iw, c] * weight[kh, kw, c] over all
//                         oh = ih*stride_h - pad_h + kh*dilation_h, ow = ...)
// Takes the calls and the packed weight of depthwise.h; `window` has height and width of x, out_height and out_width of
// y.
#pragma once

#include "lissome/kernel/depthwise/depthwise.h"

// The convolution of fused and quantized ops.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace lissome {

// at::convolution, whose `padding` may also have two numbers for each spatial dimension: first all those before, then
// all those behind.
at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, int64_t groups);

}  // namespace lissome

// What other groups of ops use of the quantized ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace lissome {

// As lissome::quantize, see quantized.cpp.
at::Tensor quantize(const at::Tensor& x, double scale, int64_t zero_point);

// Throws invalid_input for what no u8 is.
void check_zero(int64_t zero_point);

// As lissome::linear_dynamic_int8, see quantized.cpp.
at::Tensor linear_dynamic_int8(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& weight_scales,
                               const std::optional<at::Tensor>& bias, std::string_view act,
                               const std::optional<at::Tensor>& residual);

}  // namespace lissome

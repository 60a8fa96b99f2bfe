// The activations that fused ops apply on the way out: one list, read by ops, passes and lowering alike.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

namespace lissome {

// "none", "relu", "relu6", "leaky_relu" (slope 0.01), "elu" (alpha 1), "gelu", "gelu_tanh", "silu", "sigmoid", "tanh",
// "hardswish", "hardsigmoid": the `act` argument of lissome::linear_act and its kin.
std::span<const std::string_view> activation_names();
bool is_activation(std::string_view name);

// The activation by ATen's own op, so with its gradient; "none" gives the tensor itself. Throws invalid_input for a
// name that is not in the list.
at::Tensor apply_activation(std::string_view name, const at::Tensor& tensor);

}  // namespace lissome

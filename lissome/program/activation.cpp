#include "lissome/program/activation.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/relu6.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lissome/base.h"

namespace lissome {
namespace {

constexpr std::array<std::string_view, 11> kNames = {"none", "relu",    "relu6", "leaky_relu", "gelu",       "gelu_tanh",
                                                     "silu", "sigmoid", "tanh",  "hardswish",  "hardsigmoid"};

}  // namespace

std::span<const std::string_view> activation_names() { return kNames; }

bool is_activation(std::string_view name) { return std::find(kNames.begin(), kNames.end(), name) != kNames.end(); }

at::Tensor apply_activation(std::string_view name, const at::Tensor& tensor) {
  if (name == "none") return tensor;
  if (name == "relu") return at::relu(tensor);
  if (name == "relu6") return at::relu6(tensor);
  if (name == "leaky_relu") return at::leaky_relu(tensor);
  if (name == "gelu") return at::gelu(tensor);
  if (name == "gelu_tanh") return at::gelu(tensor, "tanh");
  if (name == "silu") return at::silu(tensor);
  if (name == "sigmoid") return at::sigmoid(tensor);
  if (name == "tanh") return at::tanh(tensor);
  if (name == "hardswish") return at::hardswish(tensor);
  if (name == "hardsigmoid") return at::hardsigmoid(tensor);
  throw_error(ErrorKind::invalid_input, "unknown activation '", name, "'; allowed: ",
              join(std::vector<std::string>(kNames.begin(), kNames.end()), ", "));
}

}  // namespace lissome
